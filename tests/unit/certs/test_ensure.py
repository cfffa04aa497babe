"""What a run does to a cluster, from nothing and from every kind of damage."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import trustme

from certs.bundle import normal, read_bundle
from certs.ensure import ATTEMPTS, Report, Run, RunOptions
from certs.facts import look_at
from certs.issue import issue_ca
from certs.material import DAY, KeyPair, ServiceNames, WaitSettings
from certs.ports import ContendedError, MissingObjectError
from certs.renewal import Keep, decide
from kube import JsonObject, PatchType
from tests.support.certs import (
    CA,
    CONFIGURATION,
    HOOKS,
    LEAF,
    NAMES,
    NOW,
    FakeApi,
    FakeClock,
    FakeFleet,
    ca_and_leaf,
    configuration,
    installed,
    is_trusted,
    refusal,
    unheard,
    world,
)

FOREIGN = trustme.CA().cert_pem.bytes()


def run(
    api: FakeApi,
    at: float = NOW,
    *,
    names: ServiceNames = NAMES,
    say: Callable[[str], None] = unheard,
    clock: FakeClock | None = None,
    **options: Any,
) -> Report:
    fleet = FakeFleet(api)
    wished = RunOptions(endpoints=fleet.endpoints, **options)
    return Run(world(api, clock or FakeClock(at), fleet), names, wished, say).ensure()


def ready() -> FakeApi:
    api = installed()
    run(api)
    api.writes.clear()
    return api


def assert_in_order(api: FakeApi, at: float = NOW) -> None:
    """One CA, its leaf beside it, and every hook trusting just that CA."""
    ca, leaf = api.authority(), api.leaf()
    stored = look_at(ca, leaf, api.data(LEAF)["ca.crt"])
    assert isinstance(decide(stored, NAMES.all, at), Keep)
    for text in api.bundles():
        assert read_bundle(text).trusts_only(ca.certificate)
        assert is_trusted(leaf.certificate, text)


def wiped() -> FakeApi:
    api = ready()
    api.put_bundle(b"")
    return api


def without_hooks() -> FakeApi:
    api = installed()
    api.objects[CONFIGURATION]["webhooks"] = []
    return api


@pytest.mark.parametrize(
    ("api", "days", "options", "writes", "pauses", "done"),
    [
        pytest.param(installed(), 0, {}, [CA, CONFIGURATION, LEAF], [], "new CA", id="install"),
        pytest.param(without_hooks(), 0, {}, [CA, LEAF], [], "new CA", id="no hooks"),
        pytest.param(wiped(), 0, {}, [CONFIGURATION], [], "", id="an applied configuration"),
        pytest.param(ready(), 60, {}, [LEAF], [], "two thirds of its life are over", id="due"),
        pytest.param(ready(), 0, {"force_leaf": True}, [LEAF], [], "new leaf", id="leaf"),
        pytest.param(ready(), 60, {"force_leaf": True}, [LEAF], [], "new leaf", id="due anyway"),
        pytest.param(
            ready(),
            0,
            {"names": ServiceNames(NAMES.service, NAMES.namespace, ("10.0.0.7",))},
            *([LEAF], [], "new leaf: the names have changed"),
            id="names",
        ),
        pytest.param(
            ready(),
            0,
            {"force_ca": True},
            *([CA, CONFIGURATION, LEAF, CONFIGURATION], [5.0, 5.0], "new CA"),
            id="CA",
        ),
    ],
)
def test_a_run_writes_what_is_due_and_no_more(
    api: FakeApi,
    days: int,
    options: Mapping[str, Any],
    writes: list[str],
    pauses: list[float],
    done: str,
) -> None:
    """
    From nothing CA, bundles and leaf, in that order; then the leaf alone. Only another CA goes
    through an overlap, which gives time to learn the new one and to forget the old.
    """
    clock = FakeClock(NOW + days * DAY)
    report = run(api, clock=clock, **options)

    assert (writes, pauses) == (api.writes, clock.slept)
    assert done in " ".join(report.done)
    assert_in_order(api, clock.at)


def test_missing_secrets_are_made_where_that_is_allowed() -> None:
    """An administrator's run makes the Secrets themselves."""
    api = FakeApi({CONFIGURATION: configuration()})
    run(api)

    assert_in_order(api)


def test_a_second_run_writes_nothing() -> None:
    """A run where all is well writes nothing and says that nothing was done."""
    api = ready()

    assert Report((), ()) == run(api)
    assert [] == api.writes


def test_a_due_ca_is_renewed_with_its_leaf() -> None:
    """After two thirds of its life the CA is replaced."""
    api, at = ready(), NOW + 2434 * DAY
    before = api.authority()
    run(api, at)

    assert before != api.authority()
    assert_in_order(api, at)


@pytest.mark.parametrize(
    ("path", "damage"),
    [
        (LEAF, {"tls_key": b"", "tls_crt": b""}),
        (LEAF, {"tls_key": b""}),
        (LEAF, {"tls_crt": b"junk"}),
        (LEAF, {"tls_key": ca_and_leaf()[1].key}),
        (LEAF, {"ca_crt": b""}),
        (LEAF, {"ca_crt": b"junk"}),
        (LEAF, {"tls_crt": ca_and_leaf()[1].certificate}),
        (CA, {"tls_key": b"", "tls_crt": b""}),
        (CA, {"tls_key": b""}),
        (CA, {"tls_crt": b"junk"}),
        (CA, {"tls_key": issue_ca(NOW).key}),
        (CA, {"tls_crt": FOREIGN}),
    ],
)
def test_damage_heals_and_is_reported(path: str, damage: Mapping[str, bytes]) -> None:
    """Whatever is missing, broken, mixed or of another CA is made anew, and the report says why."""
    api = ready()
    api.put_data(path, **damage)
    report = run(api)

    assert report.done
    assert_in_order(api)


def test_a_lost_ca_key_overlaps() -> None:
    """Where only the CA's key is lost, the old CA stays trusted until the new leaf is served."""
    api = ready()
    old = api.authority().certificate
    api.put_data(CA, tls_key=b"")
    fleet = FakeFleet(api, eager=False)
    fleet.pull_all()
    options = RunOptions(endpoints=fleet.endpoints)
    report = Run(world(api, FakeClock(NOW), fleet), NAMES, options, unheard).ensure()
    trusted = read_bundle(api.bundles()[0]).ours

    assert normal(old) + normal(api.authority().certificate) == trusted
    assert ("10.1.0.7:8443 still serves another certificate",) == report.pending[:1]


def test_other_keys_in_a_secret_stay() -> None:
    """Whatever somebody else keeps in the Secrets survives every renewal."""
    api = installed()
    api.put_data(LEAF, note_txt=b"mine")
    run(api)

    assert b"mine" == api.data(LEAF)["note.txt"]


def test_a_foreign_ca_stays_with_a_word() -> None:
    """A CA that somebody else put into a bundle is kept, and the run says so once."""
    api, said = ready(), list[str]()
    api.put_bundle(api.bundles()[0] + FOREIGN)
    run(api, say=said.append, force_ca=True)

    assert normal(FOREIGN) == read_bundle(api.bundles()[0]).foreign
    assert 1 == sum(HOOKS[0] in text and "not of gpufence" in text for text in said)


def test_junk_in_a_bundle_goes_with_a_word() -> None:
    """What is no certificate is removed from a bundle, and the run says what it was."""
    api, said = ready(), list[str]()
    api.put_bundle(api.bundles()[0] + api.leaf().key)
    run(api, say=said.append)

    assert any("caBundle holds a PRIVATE KEY" in text for text in said)
    assert_in_order(api)


def test_no_field_but_the_bundle_changes() -> None:
    """Everything else in the webhook configuration stays as it was."""
    api = ready()
    hooks = api.get(CONFIGURATION)["webhooks"]
    for hook in hooks:
        del hook["clientConfig"]["caBundle"]

    assert configuration()["webhooks"] == hooks


def test_a_missing_configuration_says_what_to_do() -> None:
    """Without the webhook configuration the run ends with what is missing and the remedy."""
    api = FakeApi({LEAF: {}, CA: {}})

    with pytest.raises(MissingObjectError, match="apply the manifests"):
        run(api)


class Forbidding(FakeApi):
    def post(self, path: str, body: JsonObject) -> JsonObject:
        raise refusal(403, f"{path} {body['kind']}")


def test_a_missing_secret_says_what_to_do() -> None:
    """A run whose account may not create Secrets names the one that is missing."""
    with pytest.raises(MissingObjectError, match="secret fencing/gpufence-ca does not exist"):
        run(Forbidding({CONFIGURATION: configuration()}))


class Busy(FakeApi):
    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject:
        raise refusal(409, f"{path} {type(body).__name__} {patch_type}")


def test_endless_conflicts_end_the_run() -> None:
    """Where somebody else never ceases to write, the run gives up and says so."""
    api = Busy(installed().objects)
    clock = FakeClock(NOW)

    with pytest.raises(ContendedError, match="attempts in a row"):
        run(api, clock=clock)
    assert ATTEMPTS == len(clock.slept)


class Overtaken(FakeApi):
    """Somebody else's new CA arrives just before the first write."""

    def __init__(self, objects: Mapping[str, JsonObject], other: KeyPair) -> None:
        super().__init__(objects)
        self._other: KeyPair | None = other

    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject:
        if self._other is not None:
            other, self._other = self._other, None
            self.put_data(CA, tls_crt=other.certificate, tls_key=other.key)
        return super().patch(path, body, patch_type)


def test_a_rotation_by_somebody_else_grants_the_wish() -> None:
    """Who asked for a new CA and was overtaken by somebody's new CA is content with that one."""
    other = issue_ca(NOW)
    api = Overtaken(ready().objects, other)
    run(api, force_ca=True)

    assert other == api.authority()
    assert_in_order(api)


def test_keys_are_never_said() -> None:
    """Nothing that a run says holds any part of a key."""
    api, said = installed(), list[str]()
    run(api, say=said.append)
    run(api, say=said.append, force_ca=True)
    body = "\n".join(said)

    assert not [
        line
        for pair in (api.authority(), api.leaf())
        for line in pair.key.decode().splitlines()
        if line in body
    ]


def test_patience_has_defaults() -> None:
    """Without being told, a run gives others five seconds and replicas two minutes."""
    assert WaitSettings(5.0, 120.0) == RunOptions().patience
