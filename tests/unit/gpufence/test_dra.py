"""What resource claims ask for, and how they are a dialect."""

from typing import Any

import pytest

from gpufence.annotations import NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard, usable_cards, wanted_resources
from gpufence.cards import Card
from gpufence.claim_requests import Asked, asked, class_key, classes_asked
from gpufence.devices import Device, Reading, on_card, with_devices
from gpufence.dialects import Declared, Undeclared, Units, Unreadable, read_declaration
from gpufence.dialects.dra import is_lower_bound
from gpufence.dialects.spec import UNKNOWN_AMOUNT, WHOLE_CARD, Amount, Claim
from gpufence.errors import GpufenceError
from gpufence.limits import Limits, read_limits
from gpufence.nodes import GpuNode
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB
from tests.support import builders
from tests.support.builders import T4_BYTES, container, gpushare, pod, sidecar

CARDS = {"n/gpu-0": Card("GPU-0", 0, "T4", T4_BYTES), "n/gpu-1": Card("GPU-1", 1, "T4", T4_BYTES)}
HERE = CandidateCard(Units(), T4_BYTES)


def claiming(*devices: Device, containers: tuple[dict[str, Any], ...] = (), **more: Any) -> Pod:
    """Read a pod whose containers, by default one, use claim `gpu`, which gives these devices."""
    used = containers or (builders.claiming(container(), gpu=""),)
    refs = [builders.by_name("gpu", "c")]
    raw = pod(*used, resourceClaims=refs, **more)
    return read_pod(raw)._replace(devices=devices, doubt="")


def device(gib: int, name: str = "n/gpu-0", request: str = "gpu", **fields: Any) -> Device:
    return Device("gpu", request, Amount(gib * GIB), name, CARDS.get(name), **fields)


def limits(pod: Pod) -> Limits:
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    found = read_limits(pod, options, NamespaceOptions(), HERE)
    assert isinstance(found, Limits)
    return found


def parts(pod: Pod) -> dict[str, int | None]:
    return {part.container: part.limit_bytes for part in limits(pod).parts}


WHOLE_0, WHOLE_1 = (Device("gpu", "gpu", WHOLE_CARD, f"n/gpu-{place}") for place in (0, 1))
UNKNOWN = Device("gpu", "gpu", UNKNOWN_AMOUNT)
BY_CLAIMS, EARLY = "consumed by its claims", "asked for by its claims, rounded up later"


@pytest.mark.parametrize(
    ("devices", "limit", "cards", "basis"),
    [
        ([device(3)], 3 * GIB, 1, BY_CLAIMS),
        ([device(3, name=""), device(2, name="")], 2 * GIB, 2, EARLY),
        ([device(3), device(2, request="more")], 5 * GIB, 1, BY_CLAIMS),
        ([device(3), device(2, name="n/gpu-1", request="more")], 2 * GIB, 2, BY_CLAIMS),
        ([device(2, sharers=2)], 2 * GIB, 1, "its part of a claim that 2 pods use"),
        ([WHOLE_0], T4_BYTES, 1, "whole devices"),
        ([WHOLE_1, device(2)], 2 * GIB, 2, BY_CLAIMS),
        ([WHOLE_0, device(2)], T4_BYTES, 1, "whole devices"),
        ([UNKNOWN], None, 1, ""),
        ([UNKNOWN, device(2)], None, 2, ""),
        ([Device("gpu", "a", UNKNOWN_AMOUNT, "n"), device(2, "n")], None, 1, ""),
    ],
)
def test_what_claims_give_is_the_limit(
    devices: list[Device], limit: int | None, cards: int, basis: str
) -> None:
    """
    Requests on one card add up, of several cards the least is there on each. It is enforced, since
    the scheduler counts it; a whole device, which nobody shares, is not, nor what nobody says.
    """
    found = limits(claiming(*devices))

    assert ("dra", limit) == (found.dialect, found.limit_bytes)
    assert (basis != "whole devices") == found.enforced
    assert basis in found.basis
    assert cards == found.parts[0].cards


def test_a_container_has_the_requests_that_it_names() -> None:
    """One that names none has all of them."""
    used = (
        builders.claiming(container("one"), gpu="a"),
        builders.claiming(container("two"), gpu="b"),
        container("none"),
    )
    found = claiming(device(3, request="a"), device(2, request="b"), containers=used)

    assert {"one": 3 * GIB, "two": 2 * GIB} == parts(found)
    assert 5 * GIB == limits(found).limit_bytes


SIDE, WARM = (builders.claiming(made, gpu="") for made in (sidecar("side"), container("warm")))
A, B = (builders.claiming(container(name), gpu="") for name in "ab")


@pytest.mark.parametrize(
    ("containers", "init", "expected"),
    [
        ((A, B), [], {"a": 3 * GIB, "b": 3 * GIB}),
        ((A,), [SIDE, WARM], {"side": 3 * GIB, "warm": 3 * GIB, "a": 3 * GIB}),
        ((container(),), [SIDE], {"side": 6 * GIB}),
    ],
)
def test_containers_of_one_claim_share_it(
    containers: tuple[dict[str, Any], ...], init: list[dict[str, Any]], expected: dict[str, int]
) -> None:
    """Those that run together, early or beside the pod's life, never have more than all of it."""
    found = claiming(device(6), containers=containers, init=init)

    assert expected == parts(found)
    assert 6 * GIB == limits(found).limit_bytes


def test_the_pods_own_annotation_tightens_it() -> None:
    """It never loosens it."""
    lower, higher = (
        claiming(device(4), annotations={"gpufence.io/memory": amount}) for amount in ("1Gi", "9Gi")
    )

    assert (GIB, {"main": GIB}) == (limits(lower).limit_bytes, parts(lower))
    assert (4 * GIB, {"main": 4 * GIB}) == (limits(higher).limit_bytes, parts(higher))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            claiming(device(2), containers=(container(),)),
            "no container uses what its resource claims give it",
        ),
        (claiming(), "its resource claims ask for no GPU that gpufence knows"),
        (
            claiming()._replace(doubt="resource claim c does not exist"),
            "resource claim c does not exist",
        ),
    ],
)
def test_a_claim_that_gives_nothing_declares_nothing_and_says_why(asked: Pod, why: str) -> None:
    """Its doubt is the reason where it cannot be read."""
    assert Undeclared(why) == read_declaration(asked, Units())


def test_two_systems_in_one_pod_are_unreadable() -> None:
    """A claim beside gpushare's resource: each keeps its own bookkeeping."""
    used = (builders.claiming(gpushare(), gpu=""),)

    assert isinstance(read_declaration(claiming(device(2), containers=used), Units()), Unreadable)


def test_a_resource_that_the_scheduler_serves_by_a_claim_is_the_claims() -> None:
    """What was consumed counts, and not the card that the resource seems to be."""
    raw = pod(container(**{"nvidia.com/gpu": "1"}))
    mapping = {"containerName": "main", "requestName": "r", "resourceName": "nvidia.com/gpu"}
    raw["status"] = {
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}
    }
    owned = builders.claim("x")
    owned["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": "uid-1"}]
    item = builders.allocated(owned, builders.result(memory="1Gi", name="r"))
    read = with_devices(read_pod(raw), {"extended resources": item}, Reading("uid-1", bound=True))

    assert ("dra", GIB) == (limits(read).dialect, limits(read).limit_bytes)


def test_the_cards_of_claims_are_those_that_a_pod_gets() -> None:
    """As the node's agent states them, else as the driver publishes them."""
    stated = Card("GPU-0", 0, "Tesla T4", T4_BYTES - 1)
    other = Card("GPU-7", 7, "Tesla T4", T4_BYTES)
    node = GpuNode("n", {}, frozenset(), (other, stated), Units())

    assert (stated,) == usable_cards(claiming(device(2)), node)
    assert (CARDS["n/gpu-1"],) == usable_cards(claiming(device(2, "n/gpu-1")), node)


def test_the_limit_on_each_card_is_what_is_consumed_there() -> None:
    """An agent asks card by card."""
    used = (
        builders.claiming(container("one"), gpu="a"),
        builders.claiming(container("two"), gpu="b"),
    )
    found = claiming(
        device(4, request="a"), device(2, name="n/gpu-1", request="b"), containers=used
    )

    assert [4 * GIB, 2 * GIB] == [
        limits(on_card(found, uuid)).limit_bytes for uuid in ("GPU-0", "GPU-1")
    ]


CLASS = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
INSTANCES = "deviceclass.resource.kubernetes.io/mig.nvidia.com"


def by_class(*containers: dict[str, Any], claim_bytes: int | None = GIB) -> Declared:
    """Read a pod whose resources name classes, on a node whose policy gives so much."""
    found = read_declaration(read_pod(pod(*containers)), Units(claim_bytes=claim_bytes))
    assert isinstance(found, Declared)
    return found


def test_a_resource_that_names_a_class_is_what_the_policy_gives() -> None:
    """
    On each of so many cards, until a claim is made for it and allocated; else, and of instances,
    nobody knows. It is the scheduler's alone, so that no node has to list it.
    """
    known = by_class(container(**{CLASS: "2"}))
    unknown = by_class(container(**{CLASS: "1"}), claim_bytes=None)
    instances = by_class(container(**{CLASS: "1", INSTANCES: "1"}))

    assert [Claim("main", Amount(GIB), 2)] == list(known.claims)
    assert "the least that its resources can get, exact later" == known.basis
    assert [Claim("main", UNKNOWN_AMOUNT)] == list(unknown.claims)
    assert [Claim("main", UNKNOWN_AMOUNT, 2)] == list(instances.claims)
    assert frozenset() == wanted_resources(read_pod(pod(container(**{CLASS: "1"}))))


def test_resources_of_several_containers_may_be_on_several_cards() -> None:
    """
    So that the least that one of them gets is what the pod may hold on each; beside an instance of
    unknown size that is unknown.
    """
    found = by_class(container("one", **{CLASS: "1"}), container("two", **{CLASS: "2"}))
    unknown = by_class(container("one", **{CLASS: "1"}), container("two", **{INSTANCES: "1"}))

    assert [GIB, None] == [found.most_bytes, unknown.most_bytes]


def test_a_claim_without_an_amount_is_what_the_policy_gives() -> None:
    """Beside one with an amount the smaller one counts."""
    asked = Device("gpu", "any", UNKNOWN_AMOUNT, by_policy=True)
    found = read_declaration(claiming(asked, device(4, name="")), Units(claim_bytes=2 * GIB))

    assert isinstance(found, Declared)
    assert [Claim("main", Amount(2 * GIB), 2)] == list(found.claims)
    assert is_lower_bound(claiming(asked, device(4)))
    assert not is_lower_bound(claiming(device(4)))


OURS = "device.driver == 'gpu.nvidia.com'"
OTHERS = "device.driver == 'store.example.com'"
Json = dict[str, Any]


def selecting(*expressions: str) -> Json:
    """Describe what a class, or a request, says of its devices."""
    return {"selectors": [{"cel": {"expression": each}} for each in expressions]}


def of_class(memory: str = "", **fields: Any) -> Json:
    made = builders.request(memory, **fields)
    made["exactly"]["deviceClassName"] = "shared"
    return made


def found(request_of: Json, told: Any) -> list[Asked]:
    spec = builders.claim("c", request_of)["spec"]
    return list(asked(spec, {class_key("shared"): told} if told is not None else {}))


@pytest.mark.parametrize(
    ("request_of", "told", "amount"),
    [
        (of_class("2Gi"), {"spec": selecting("true", OURS)}, Amount(2 * GIB)),
        (of_class("2Gi"), None, Amount(2 * GIB)),
        (of_class("2Gi", **selecting(OURS)), {"spec": {}}, Amount(2 * GIB)),
        (of_class(), {"spec": selecting(OURS)}, UNKNOWN_AMOUNT),
    ],
    ids=["by its class", "of a class unasked for", "by itself", "without an amount"],
)
def test_memory_of_the_gpu_driver_counts(request_of: Json, told: Any, amount: Amount) -> None:
    """
    Named by class or request, or by nobody, as at an agent; what a class of one's own gives is not
    always what the driver's policy gives by default.
    """
    assert [Asked("gpu", amount)] == found(request_of, told)


@pytest.mark.parametrize("memory", ["2Gi", ""])
@pytest.mark.parametrize("told", [{"spec": selecting(OTHERS)}, {"spec": {}}, {}])
def test_memory_of_another_drivers_devices_is_none_of_ours(memory: str, told: Json) -> None:
    """Any driver may call a capacity so."""
    assert [] == found(of_class(memory), told)


def test_a_class_that_cannot_be_read_leaves_memory_in_doubt() -> None:
    """A limit would be a guess; who asks for no memory there may as well ask for no GPU."""
    with pytest.raises(GpufenceError, match="memory of device class shared, which does not exist"):
        found(of_class("2Gi"), "does not exist")

    assert [] == found(of_class(), "does not exist")


def test_only_classes_of_other_names_have_to_be_asked_for() -> None:
    """Each once; those of the driver's own manifests are known."""
    either = {
        "name": "any",
        "firstAvailable": [of_class()["exactly"], builders.request()["exactly"]],
    }
    item = builders.claim("c", builders.request("1Gi"), of_class("1Gi"), either, {"name": "odd"})

    assert ["shared"] == classes_asked([item, builders.template("t", of_class())])
    assert ["shared"] == classes_asked([builders.template("t", of_class())])


def test_where_nothing_has_to_be_told_no_class_is_asked_for() -> None:
    """An allocation names the driver, and what cannot be read names nothing."""
    item = builders.allocated(builders.claim("c", of_class("1Gi")), builders.result(memory="1Gi"))

    assert [] == classes_asked([item, "does not exist", {"spec": "nothing"}])
