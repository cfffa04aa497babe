"""The program: settings, accounts, clocks, and the daily run."""

import time
from contextlib import suppress

import pytest
import trustme
from cryptography import x509

from certs import account
from certs.__main__ import ServerClock
from certs.ensure import Report, TrustMode
from certs.issue import issue_ca
from certs.material import DAY, ServiceNames, WaitSettings
from certs.ports import NeedsInstallError, Replica
from certs.settings import PREFIX, CertsSettings, read_endpoints
from gpufence.errors import SettingsError
from gpufence.names import CERTS_INSTALL
from gpufence.settings import read_settings, unknown_settings
from kube import JsonObject, core, group
from tests.support.certs import (
    CA,
    CONFIGURATION,
    HOOKS,
    LEAF,
    NAMES,
    NOW,
    FakeApi,
    FakeClock,
    installed,
)
from tests.unit.certs.test_ensure import assert_in_order, ready, run


def test_nothing_set_means_the_manifests_names() -> None:
    """Without any variable the names are those of the manifests."""
    settings = read_settings(CertsSettings, {})

    assert ServiceNames("gpufence-webhook", "gpufence-system") == settings.names
    assert WaitSettings() == settings.patience


def test_everything_can_be_set() -> None:
    """Every variable is read by its type, addresses in their one normal spelling."""
    read = read_settings(
        CertsSettings,
        {
            "GPUFENCE_NAMESPACE": "fence",
            "GPUFENCE_WEBHOOK_SERVICE": "hook",
            "GPUFENCE_CERTS_ADDRESSES": "10.0.0.7, FD00:0:0::7",
            "GPUFENCE_CERTS_SETTLE_SECONDS": "0.5",
            "GPUFENCE_CERTS_WAIT_SECONDS": "0",
        },
    )

    assert ServiceNames("hook", "fence", ("10.0.0.7", "fd00::7")) == read.names
    assert WaitSettings(0.5, 0.0) == read.patience


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GPUFENCE_NAMESPACE", "a/b"),
        ("GPUFENCE_WEBHOOK_SERVICE", "Hook"),
        ("GPUFENCE_CERTS_ADDRESSES", "10.0.0"),
        ("GPUFENCE_CERTS_SETTLE_SECONDS", "soon"),
        ("GPUFENCE_CERTS_WAIT_SECONDS", "1e9"),
    ],
)
def test_mistakes_name_variable_and_value(name: str, value: str) -> None:
    """What cannot be read is refused with its name and its value."""
    with pytest.raises(SettingsError, match=f'{name}: "{value}"'):
        read_settings(CertsSettings, {name: value})


def test_misspelt_variables_are_found() -> None:
    """A variable that only looks like one of this program's is reported."""
    unknown = unknown_settings(CertsSettings, {"GPUFENCE_CERTS_WAIT": "1"}, PREFIX)

    assert ("GPUFENCE_CERTS_WAIT",) == unknown


def test_endpoints_are_read() -> None:
    """Endpoints are hosts with ports, IPv6 in brackets."""
    read = read_endpoints("10.0.0.7:8443, [fd00::7]:443", "--endpoints")

    assert (Replica("10.0.0.7", 8443), Replica("fd00::7", 443)) == read


@pytest.mark.parametrize("text", ["10.0.0.7", "10.0.0.7:https", "a:1,b"])
def test_an_endpoint_without_port_is_refused(text: str) -> None:
    """An endpoint that is no host and port is refused, with an example."""
    with pytest.raises(SettingsError, match=r"--endpoints: .* such as 10\.0\.0\.7:8443"):
        read_endpoints(text, "--endpoints")


RBAC = "rbac.authorization.k8s.io/v1"
JOB = group("batch/v1", "namespaces", NAMES.namespace, "jobs", CERTS_INSTALL)
PATHS = [
    group(RBAC, "clusterrolebindings", CERTS_INSTALL),
    group(RBAC, "clusterroles", CERTS_INSTALL),
    JOB,
    core("namespaces", NAMES.namespace, "serviceaccounts", CERTS_INSTALL),
]
KINDS = ("ClusterRoleBinding", "ClusterRole", "Job", "ServiceAccount")


def ended(kind: str, status: str = "True") -> JsonObject:
    return {"status": {"conditions": [{"type": kind, "status": status}]}}


def test_rights_go_first_and_the_account_last() -> None:
    """The dangerous right is the first to go, and the token works until nothing else is left."""
    api = FakeApi({path: {} for path in PATHS})

    assert KINDS == account.remove(api, NAMES.namespace)
    assert PATHS == api.writes
    assert () == account.remove(api, NAMES.namespace)


def test_what_is_half_gone_goes_all_the_way() -> None:
    """A removal that was stopped is finished by the next."""
    api = FakeApi({PATHS[1]: {}, PATHS[3]: {}})

    assert ("ClusterRole", "ServiceAccount") == account.remove(api, NAMES.namespace)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (None, False),
        ({}, True),
        ({"status": {"active": 1}}, True),
        (ended("Suspended"), True),
        (ended("Failed", "False"), True),
        (ended("Failed"), False),
        (ended("Complete"), False),
    ],
)
def test_an_install_is_at_work_until_its_job_has_ended(
    job: JsonObject | None, *, expected: bool
) -> None:
    """A Job that has neither completed nor failed keeps its account."""
    api = FakeApi({} if job is None else {JOB: job})

    assert expected == account.is_at_work(api, NAMES.namespace)


class Server:
    """Says what time it is, off by some seconds."""

    def __init__(self, off: float | None) -> None:
        self.off = off
        self.asked = 0

    def date(self) -> float | None:
        self.asked += 1
        return None if self.off is None else time.time() + self.off


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (0.0, []),
        (500.0, []),
        (3 * DAY + 5, ["the clock of this machine is 3d behind the API server's, which counts"]),
        (
            5 - 3 * DAY,
            ["the clock of this machine is 2d23h ahead of the API server's, which counts"],
        ),
    ],
)
def test_the_api_servers_time_counts(off: float, said: list[str]) -> None:
    """The time is the API server's, and a machine whose own is far off is told so, once."""
    heard: list[str] = []
    server = Server(off)
    clock = ServerClock(server, heard.append)

    assert time.time() + off == pytest.approx(clock.now(), abs=2)
    assert time.time() + off == pytest.approx(clock.now(), abs=2)
    assert said == heard
    assert 1 == server.asked


def test_time_goes_on_while_a_run_waits() -> None:
    """What a run sleeps has passed on its clock."""
    clock = ServerClock(Server(DAY), lambda _text: None)
    before = clock.now()
    clock.sleep(0.01)

    assert 0.01 <= clock.now() - before
    assert 0 <= clock.chance() < 1


def test_a_server_without_a_date_is_said() -> None:
    """Where an answer has no date, the machine's own clock counts, and the run says so."""
    heard: list[str] = []

    assert time.time() == pytest.approx(ServerClock(Server(None), heard.append).now(), abs=2)
    assert ["the API server does not say what time it is: this machine's clock counts"] == heard


FOREIGN = trustme.CA().cert_pem.bytes()


def without_the_right(api: FakeApi) -> list[str]:
    """Return what was written of those that take the right on the webhook configuration."""
    return [path for path in api.writes if path == CONFIGURATION]


def test_the_daily_run_renews_a_due_leaf() -> None:
    """Without the right on the webhook configuration the leaf is renewed by the CA there is."""
    api, at = ready(), NOW + 60 * DAY
    report = run(api, at, trust=TrustMode.CHECK)

    assert ("new leaf: two thirds of its life are over",) == report.done
    assert [LEAF] == api.writes
    assert_in_order(api, at)


def test_the_daily_run_renews_leaves_under_a_ca_that_is_due() -> None:
    """A CA that is due signs on, and the run says who replaces it."""
    api, at, said = ready(), NOW + 2500 * DAY, list[str]()
    before = api.authority()
    run(api, at, trust=TrustMode.CHECK, say=said.append)

    assert before == api.authority()
    assert [LEAF] == api.writes
    assert any("the CA is due, and the install job replaces it" in text for text in said)


@pytest.mark.parametrize("trust", [TrustMode.CHECK, TrustMode.LATER])
def test_the_daily_run_replaces_no_ca(trust: TrustMode) -> None:
    """A CA that has to be replaced is left to the install, and nothing is written."""
    api = ready()
    api.put_data(CA, tls_key=b"")

    with pytest.raises(NeedsInstallError, match="the CA has to be replaced: it cannot be read"):
        run(api, trust=trust)
    assert [] == api.writes


@pytest.mark.parametrize("bundle", [b"", FOREIGN, issue_ca(NOW).certificate])
def test_the_daily_run_serves_no_leaf_that_is_not_trusted(bundle: bytes) -> None:
    """Where a hook does not trust the CA the leaf stays, and the run names hook and remedy."""
    api, at = ready(), NOW + 60 * DAY
    api.put_bundle(bundle)

    with pytest.raises(NeedsInstallError, match=f"{HOOKS[0]} .* does not trust the CA.*apply the"):
        run(api, at, trust=TrustMode.CHECK)
    assert [] == api.writes


def test_the_daily_run_gives_the_api_servers_time_where_the_ca_is_new() -> None:
    """A rotation that died before its leaf was made is finished but for the old CA."""
    api, clock = ready(), FakeClock(NOW)
    old, new = api.authority(), issue_ca(NOW)
    api.put_data(CA, tls_crt=new.certificate, tls_key=new.key)
    for number in range(len(HOOKS)):
        api.put_bundle(old.certificate + new.certificate, number)
    report = run(api, clock=clock, trust=TrustMode.CHECK)

    assert ("new leaf: another CA has signed it",) == report.done
    assert 1 == len(report.pending)
    assert [5.0] == clock.slept
    assert [LEAF] == api.writes


def test_certificates_are_issued_before_anything_trusts_them() -> None:
    """Where no hook trusts a CA of ours, CA and leaf are made, and an install has them trusted."""
    api = installed()
    run(api, trust=TrustMode.LATER)
    leaf = api.leaf()

    assert [CA, LEAF] == api.writes
    assert Report((), ()) == run(api, trust=TrustMode.LATER)

    run(api)
    assert leaf == api.leaf()
    assert_in_order(api)


def test_only_an_install_writes_whom_to_trust() -> None:
    """Neither of the two runs without that right ever tries."""
    for trust in (TrustMode.CHECK, TrustMode.LATER):
        for api in (ready(), installed()):
            for at in (NOW, NOW + 61 * DAY, NOW + 4000 * DAY):
                with suppress(NeedsInstallError):
                    run(api, at, trust=trust)
            assert [] == without_the_right(api)


def test_a_ca_of_a_shorter_life_signs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of a CA that was made for a year end with it, and an install replaces it when due."""
    monkeypatch.setattr("certs.issue.CA_DAYS", 365)
    api = ready()
    before = api.authority()
    for day in range(1, 360, 20):
        run(api, NOW + day * DAY, trust=TrustMode.CHECK)
    leaf, ca = (
        x509.load_pem_x509_certificate(pair.certificate) for pair in (api.leaf(), api.authority())
    )

    assert before == api.authority()
    assert leaf.not_valid_after_utc == ca.not_valid_after_utc

    run(api, NOW + 350 * DAY)
    assert before != api.authority()
    assert_in_order(api, NOW + 350 * DAY)
