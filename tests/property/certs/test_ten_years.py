"""Ten years and more of daily runs, in seconds."""

from collections import Counter

from cryptography import x509

from certs.bundle import read_bundle
from certs.ensure import Run, RunOptions
from certs.issue import CA_DAYS, LEAF_DAYS
from certs.material import DAY
from tests.support.certs import (
    CA,
    CONFIGURATION,
    LEAF,
    NAMES,
    NOW,
    FakeClock,
    FakeFleet,
    installed,
    is_trusted,
    world,
)

YEARS_DAYS = 3660


def expiry(certificate: bytes) -> float:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def test_ten_years_of_daily_runs() -> None:
    """
    Over ten years no replica serves a leaf that has expired or is not trusted, and every write is
    one that was due.
    """
    api, clock = installed("cap.pods.gpufence.io"), FakeClock(NOW)
    fleet = FakeFleet(api, size=1)
    options = RunOptions(endpoints=fleet.endpoints)
    least_days, mistrusted = float(CA_DAYS), 0
    for day in range(YEARS_DAYS):
        clock.at = NOW + day * DAY
        # The day before is over: what is served now was served until this moment.
        for pair in filter(None, fleet.serving):
            left = expiry(pair.certificate) - clock.at
            least_days = min(least_days, left / DAY)
            mistrusted += not is_trusted(pair.certificate, api.bundles()[0])
        Run(world(api, clock, fleet), NAMES, options, lambda _text: None).ensure()
        fleet.pull_all()
    writes = Counter(api.writes)
    leaves = 1 + YEARS_DAYS // (LEAF_DAYS * 2 // 3)

    assert 0 == mistrusted
    assert LEAF_DAYS / 3 - 1 <= least_days
    assert 2 == writes[CA]
    assert 1 + 2 == writes[CONFIGURATION]
    assert writes[LEAF] <= leaves + 1
    assert read_bundle(api.bundles()[0]).trusts_only(api.authority().certificate)
