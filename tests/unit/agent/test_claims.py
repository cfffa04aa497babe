"""Pods whose cards come by resource claims, as their node's agent sees them."""

from typing import Any

import pytest

from agent.judge.standing import account_of
from agent.model.pod import PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.use import CardUse
from gpufence.cards import Instance
from gpufence.quantity import GIB
from tests.support import builders
from tests.support.agent.builders import CARDS, card_sample, pod, process_of, read, uses
from tests.support.builders import container
from tests.support.builders import pod as raw_pod

UUID = CARDS[0].uuid
DEVICES = {f"gpu.nvidia.com/node-1/gpu-{card.index}": card for card in CARDS}
RESULT = builders.result(memory="3Gi")
MORE = builders.result(memory="2Gi", name="more")


def claiming(**spec: Any) -> dict[str, Any]:
    refs = [builders.by_name("gpu", "c")]
    raw = raw_pod(builders.claiming(container(), gpu=""), resourceClaims=refs, **spec)
    raw["metadata"]["uid"] = "uid-1"
    return raw


def given(*results: dict[str, Any], raw: dict[str, Any] | None = None, **ground: Any) -> PodOnNode:
    """Read a pod whose one claim was given this."""
    item = builders.allocated(builders.claim("c"), *results)
    devices = ground.pop("devices", DEVICES)
    return read(raw or claiming(), {"gpu": item}, devices, **ground)


def sharing(*held: int, limit: int = 8 * GIB) -> tuple[list[PodOnNode], CardUse]:
    """Return pods that use one claim and hold so much, beside one of 2 GiB that does not."""
    fence = {UUID: PodLimit(limit, claims=(("c", limit),))}
    found = [pod(f"p{place}", limits=fence) for place in range(len(held))]
    found.append(pod("other", limit=2 * GIB))
    lists = dict(enumerate((*held, GIB), start=1))
    people = [process_of(item, place) for place, item in enumerate(found, start=1)]
    return found, uses([card_sample(0, lists)], people, found).cards[UUID]


@pytest.mark.parametrize(
    ("results", "limits", "assigned"),
    [
        ((RESULT,), [3 * GIB, 1], [0]),
        ((RESULT, builders.result("gpu-1", memory="2Gi")), [3 * GIB, 2 * GIB], [0, 1]),
        ((RESULT, RESULT, MORE), [8 * GIB, 1], [0]),
        ((builders.result("cut", memory="3Gi"),), [3 * GIB, 3 * GIB], []),
    ],
    ids=["one card", "two", "requests of one name are one", "a device that NVML does not list"],
)
def test_the_limit_is_what_was_consumed_on_the_card(
    results: tuple[dict[str, Any], ...], limits: list[int], assigned: list[int]
) -> None:
    """
    Its devices are known to be no other cards, where a limit of one byte reads as one; a device
    that is none of the cards may be on any.
    """
    found = given(*results)

    assert limits == [found.limit_on(card.uuid) for card in CARDS[:2]]
    assert frozenset(CARDS[each].uuid for each in assigned) == found.assigned
    assert found.enforced


@pytest.mark.parametrize(
    "beside",
    [builders.result("gpu-1", adminAccess=True), builders.result("cut", memory="1Gi")],
    ids=["administrator", "unknown card"],
)
def test_who_may_be_on_other_cards_is_held_to_what_it_has_at_all(beside: dict[str, Any]) -> None:
    """Access for administrators is to any card, and a device without a card may be on any."""
    found = given(RESULT, beside)

    assert 3 * GIB == found.limit_on(UUID)
    assert 1 != found.limit_on(CARDS[1].uuid)


def test_an_instance_and_its_card_are_one_place() -> None:
    """NVML may list a process on both of them."""
    cut = CARDS[1]._replace(mig=Instance(UUID, "1g.5gb"))
    cards = (CARDS[0], cut, CARDS[2])
    slices = {**DEVICES, "gpu.nvidia.com/node-1/gpu-1": cut}
    limits = []
    for device in ("gpu-0", "gpu-1"):
        found = given(builders.result(device, memory="3Gi"), devices=slices, cards=cards)
        limits.append([found.limit_on(card.uuid) for card in cards])

    assert [[3 * GIB, 3 * GIB, 1]] * 2 == limits


@pytest.mark.parametrize(("whole", "part"), [("gpu-0", "gpu-1"), ("gpu-1", "gpu-0")])
def test_a_whole_card_sheds_no_fence_of_another(whole: str, part: str) -> None:
    """Whichever of both is listed first."""
    results = builders.result(whole), builders.result(part, memory="2Gi", name="more")
    found = given(*results, cards=CARDS[:2])

    assert found.enforced
    assert 2 * GIB == found.limit_on(DEVICES[f"gpu.nvidia.com/node-1/{part}"].uuid)


def test_whole_cards_alone_leave_a_pod_unfenced() -> None:
    """Its devices are its limits."""
    assert not given(builders.result()).enforced


def test_without_its_claims_a_pod_has_no_limit_and_a_reason() -> None:
    """Until they have been read, and where that fails, nobody is held to a guess."""
    unread = read(claiming())
    gone = read(claiming(), {"gpu": "does not exist"})

    assert ({}, "resource claim c does not exist") == (gone.limits, gone.undeclared)
    assert "has not been read" in unread.undeclared


def test_a_limit_knows_of_which_requests_it_is_made() -> None:
    """Those that a container uses; one that no other pod uses is the pod's own."""
    found = given(RESULT, RESULT, MORE)
    (alone,) = pods_on_node([given(RESULT)]).by_uid.values()

    assert (("uid-c/gpu", 6 * GIB), ("uid-c/more", 2 * GIB)) == found.limits[UUID].claims
    assert (0, 3 * GIB) == (alone.limits[UUID].share_bytes, alone.promise_on(UUID))
    assert () == given(builders.result(), MORE).limits[UUID].claims  # a whole card is no amount


def test_a_request_that_no_container_uses_is_no_part_of_the_limit() -> None:
    """Another pod may use just that one."""
    raw = claiming()
    raw["spec"]["containers"][0] = builders.claiming(container(), gpu="more")
    found = given(RESULT, MORE, raw=raw)

    assert (("uid-c/more", 2 * GIB),) == found.limits[UUID].claims
    assert 2 * GIB == found.limit_on(UUID)


def shared(*made_of: dict[str, int]) -> list[tuple[int | None, int]]:
    """Return the limit and the certain part of pods whose limits are made of these claims."""
    limits = [{UUID: PodLimit(sum(of.values()), claims=tuple(of.items()))} for of in made_of]
    pods = [pod(f"p{place}", limits=limit) for place, limit in enumerate(limits)]
    known = pods_on_node(pods).by_uid
    return [
        (known[item.uid].limit_on(UUID), known[item.uid].limits[UUID].share_bytes) for item in pods
    ]


@pytest.mark.parametrize(
    ("made_of", "expected"),
    [
        (({"c": 8}, {"c": 8}), [(8, 4), (8, 4)]),
        (({"c": 8, "d": 4}, {"c": 8, "d": 4}), [(12, 6), (12, 6)]),
        (({"c/a": 8}, {"c/b": 4}), [(8, 0), (4, 0)]),
        (({"c": 8, "own": 3}, {"c": 8}), [(7, 0), (4, 0)]),
        (({"c": 8, "d": 4}, {"c": 8}, {"d": 4}), [(6, 0), (4, 0), (2, 0)]),
    ],
)
def test_pods_that_share_never_have_more_than_all_claims_together(
    made_of: tuple[dict[str, int], ...], expected: list[tuple[int, int]]
) -> None:
    """
    Those who use the same may hold it together; where one has more beside it each has its part.
    """
    assert expected == shared(*made_of)


@pytest.mark.parametrize(
    ("held", "limits"),
    [
        ((6 * GIB, GIB), [7 * GIB, 4 * GIB]),
        ((6 * GIB, 3 * GIB), [5 * GIB, 4 * GIB]),
        ((2 * GIB, GIB, GIB), [6 * GIB, 5 * GIB, 5 * GIB]),
    ],
)
def test_pods_of_one_claim_have_what_the_others_do_not_hold(
    held: tuple[int, ...], limits: list[int]
) -> None:
    """
    And an equal part at least, so that who takes more than that is over when all together are.
    """
    found, card = sharing(*held)

    assert [*limits, 2 * GIB] == [card.pods[item.uid].limit_bytes for item in found]


def test_the_sum_of_promises_is_the_claim() -> None:
    """Of eight GiB two pods are promised four each, and the card counts no more than eight."""
    found, card = sharing(GIB, GIB)
    account = account_of(card, pods_on_node(found), EvictionPolicy())
    known = pods_on_node(found).by_uid

    assert [4 * GIB, 4 * GIB] == [known[f"uid-p{place}"].promise_on(UUID) for place in (0, 1)]
    assert 10 * GIB == account.committed_bytes


def test_a_pod_that_has_ended_shares_nothing() -> None:
    """What it had of the claim is the others' again."""
    fence = {UUID: PodLimit(8 * GIB, claims=(("c", 8 * GIB),)), "GPU-other": PodLimit(GIB)}
    known = pods_on_node(
        [
            pod("a", limits=fence),
            pod("b", limits=fence),
            pod("gone", limits=fence, ended=True),
        ]
    ).by_uid

    assert (4 * GIB, GIB) == (
        known["uid-a"].promise_on(UUID),
        known["uid-a"].promise_on("GPU-other"),
    )


def test_what_is_kept_of_a_pod_reads_the_same() -> None:
    """
    The names of its claims survive, those that were made for it and the scheduler's own among them.
    """
    raw = claiming()
    mapping = {"containerName": "main", "requestName": "r", "resourceName": "example.com/gpu"}
    raw["status"] = {
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made", "more": "x"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]},
    }
    owned = builders.claim("x")
    owned["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": "uid-1"}]
    claims = {
        "gpu": builders.allocated(builders.claim("c"), builders.result(memory="2Gi")),
        "extended resources": builders.allocated(owned, builders.result(memory="1Gi", name="r")),
    }

    assert 3 * GIB == read(raw, claims, DEVICES).limit_on(UUID)
