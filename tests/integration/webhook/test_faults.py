"""
Whatever becomes of the webhook, pods are made and bound, in time: one that misbehaves is in the
place of ours for the whole file.
"""

from collections.abc import Iterator

import pytest

from tests.integration.webhook.front import FAULTS, Front, assert_made_and_bound
from tests.support.authority import Authority
from tests.support.site import DAMAGED
from tests.support.webhook_site import WebhookSite


@pytest.fixture(scope="module")
def front(
    site: WebhookSite, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """Lend a webhook that misbehaves, in the place of ours."""
    with (
        Front(tmp_path_factory.mktemp("front"), authority.leaf()) as running,
        site.calling(running.port, lambda: running.calls, patiently=False),
    ):
        yield running


@pytest.fixture
def honest(front: Front, authority: Authority) -> Iterator[Front]:
    """Lend it for one fault, and mend it afterwards."""
    yield front
    front.fault = "none"
    front.present(authority.leaf())


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[pytest.mark.since(*DAMAGED)] if fault == "junk patch" else [])
        for fault in sorted(FAULTS.keys() - {"none"})
    ],
)
def test_a_misbehaving_webhook_stops_nobody(site: WebhookSite, honest: Front, fault: str) -> None:
    """Hanging, slow, failing or talking nonsense: the pod is created within the timeout."""
    honest.fault = fault

    assert_made_and_bound(site)


@pytest.mark.parametrize("certificate", ["of another authority", "expired", "for another name"])
def test_a_wrong_certificate_stops_nobody(
    site: WebhookSite, honest: Front, authority: Authority, certificate: str
) -> None:
    """A webhook that cannot be trusted is passed by."""
    leaves = {
        "of another authority": Authority().leaf(),
        "expired": authority.leaf(days=-0.5),
        "for another name": authority.leaf("elsewhere.example.com"),
    }
    honest.present(leaves[certificate])

    assert_made_and_bound(site, seconds=0)
