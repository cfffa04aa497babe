"""What resource claims give a pod, and what nobody can say."""

from typing import Any

import pytest

from gpufence.cards import Card
from gpufence.devices import (
    MOST_CLAIMS,
    Device,
    Reading,
    has_admin_access,
    on_card,
    with_devices,
    with_parts,
)
from gpufence.dialects.spec import UNKNOWN_AMOUNT, WHOLE_CARD, Amount
from gpufence.pods import EXTENDED, Pod, read_pod
from gpufence.quantity import GIB, MIB
from tests.support import builders
from tests.support.builders import container, pod

FIRST, SECOND = "gpu.nvidia.com/node-1/gpu-0", "gpu.nvidia.com/node-1/gpu-1"
CARDS = {
    FIRST: Card("GPU-0", 0, "T4", 15 * GIB, (7, 5)),
    SECOND: Card("GPU-1", 1, "T4", 15 * GIB, (7, 5)),
}
CREATED = Reading()
BOUND = Reading("uid-1", bound=True, cards=CARDS)


def claiming(**ref: str) -> Pod:
    """Read a pod with one claim, by default a ResourceClaim of its own name."""
    item = {"name": "gpu", **(ref or {"resourceClaimName": "c"})}
    return read_pod(pod(builders.claiming(container(), gpu=""), resourceClaims=[item]))


def of_template(made: str = "") -> Pod:
    raw = pod(
        builders.claiming(container(), gpu=""),
        resourceClaims=[builders.by_template("gpu", "t")],
    )
    if made:
        statuses = [{"name": "gpu", "resourceClaimName": made}]
        raw["status"] = {"resourceClaimStatuses": statuses}
    return read_pod(raw)


def owned(item: dict[str, Any], uid: str) -> dict[str, Any]:
    owners = [{"kind": "Pod", "name": "p", "uid": uid}]
    return {**item, "metadata": {**item["metadata"], "ownerReferences": owners}}


def read(item: Any, reading: Reading = CREATED, of: Pod | None = None) -> Pod:
    return with_devices(of or claiming(), {"gpu": item}, reading)


def amounts(read_pod: Pod) -> list[Amount]:
    assert "" == read_pod.doubt
    return [device.amount for device in read_pod.devices]


def test_a_pod_without_claims_stays_as_it_is() -> None:
    """Nothing is read where nothing is asked for."""
    plain = read_pod(pod(container()))

    assert plain is with_devices(plain, {}, CREATED)
    assert plain is with_parts(plain, {}, CREATED)


def test_a_request_counts_until_the_claim_is_allocated() -> None:
    """What is asked for is a lower bound of what will be consumed."""
    assert [Amount(3000 * MIB)] == amounts(read(builders.claim("c", builders.request("3000Mi"))))
    assert [Amount(2 * GIB)] == amounts(
        read(builders.template("t", builders.request("2Gi")), of=of_template())
    )


def test_what_was_consumed_counts_from_then_on() -> None:
    """The allocation says how much of which card it is."""
    item = builders.allocated(
        builders.claim("c", builders.request("3000Mi")), builders.result(memory="3Gi")
    )
    (device,) = read(item, BOUND).devices

    assert Device("gpu", "gpu", Amount(3 * GIB), FIRST, CARDS[FIRST], "uid-c") == device


def either(*requests: dict[str, Any]) -> dict[str, Any]:
    """Ask for the first that is there; none of them needs a name."""
    found = [{"name": f"r{place}", **each["exactly"]} for place, each in enumerate(requests)]
    return {"name": "gpu", "firstAvailable": found}


ANY, MUCH, NIC = builders.request(), builders.request("8Gi"), {"deviceClassName": "nic.example.com"}
TWO = builders.request("4Gi", count=2)


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (ANY, [UNKNOWN_AMOUNT]),
        (builders.request("1Gi", count=2), [Amount(GIB)] * 2),
        (builders.request("1Gi", count=65), [Amount(GIB)] * 64),
        (builders.request(adminAccess=True), []),
        ({"name": "nic", "exactly": NIC}, []),
        (either(MUCH, builders.request("4Gi")), [Amount(4 * GIB)]),
        (either(MUCH, ANY), [UNKNOWN_AMOUNT]),
        (either(MUCH, {"exactly": NIC}), [UNKNOWN_AMOUNT]),
        (either(TWO, builders.request("8Gi", count=1)), [Amount(4 * GIB)]),
        ({"name": "odd"}, []),
    ],
)
def test_every_form_of_a_request(request_of: dict[str, Any], expected: list[Amount]) -> None:
    """Of alternatives the least counts, and nothing where one of them says no amount."""
    assert expected == amounts(read(builders.claim("c", request_of)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (builders.result(), [WHOLE_CARD]),
        (builders.result(shareID="s"), [UNKNOWN_AMOUNT]),
        (builders.result(memory="2Gi", adminAccess=True), []),
        (builders.result(memory="2Gi") | {"driver": "nic.example.com"}, []),
    ],
)
def test_every_form_of_a_result(given: dict[str, Any], expected: list[Amount]) -> None:
    """A device that is not shared is the limit itself; of one shared uncounted nobody knows."""
    assert expected == amounts(read(builders.allocated(builders.claim("c"), given), BOUND))


def test_the_alternative_that_was_taken_belongs_to_its_request() -> None:
    """A result of `name/alternative` is what the container calls `name`."""
    item = builders.allocated(builders.claim("c"), builders.result(memory="2Gi", name="gpu/less"))

    assert ["gpu"] == [device.request for device in read(item, BOUND).devices]


GONE = "2026-11-19T00:00:00Z"
DELETED = {"metadata": {"name": "c", "deletionTimestamp": GONE}}


def given(item: Any = None, users: tuple[str, ...] = ("uid-1",), **result: Any) -> dict[str, Any]:
    return builders.allocated(item or builders.claim("c"), builders.result(**result), users=users)


@pytest.mark.parametrize(
    ("item", "reading", "of", "doubt"),
    [
        ("does not exist", CREATED, claiming(), "resource claim c does not exist"),
        ("does not exist", CREATED, of_template(), "resource claim template t does not exist"),
        (builders.template("t"), BOUND, of_template(), "template t has not become a claim yet"),
        (builders.claim("c"), BOUND, claiming(), "resource claim c is not allocated"),
        (DELETED, CREATED, claiming(), "resource claim c is being deleted"),
        (given(users=("uid-2",)), BOUND, claiming(), "claim c is not reserved for this pod"),
        (given(DELETED, memory="2Gi"), CREATED, claiming(), "resource claim c is being deleted"),
        (builders.claim("made"), BOUND, of_template("made"), "claim made belongs to another pod"),
        (given(memory="9999Ti"), BOUND, claiming(), "is more than any card holds"),
        (given(memory="much"), BOUND, claiming(), "consumedCapacity.memory"),
        ([], CREATED, claiming(), "has not been read"),
    ],
)
def test_what_cannot_be_known_is_a_doubt(item: Any, reading: Reading, of: Pod, doubt: str) -> None:
    """A word for people, and no device."""
    found = {} if item == [] else {"gpu": item}
    said = with_devices(of, found, reading)

    assert doubt in said.doubt
    assert () == said.devices


def test_too_many_claims_are_not_read() -> None:
    """Each costs a question while somebody waits."""
    refs = [builders.by_name(f"c{number}", "c") for number in range(MOST_CLAIMS + 1)]
    said = with_devices(read_pod(pod(container(), resourceClaims=refs)), {}, CREATED)

    assert f"it has more than {MOST_CLAIMS} resource claims" == said.doubt


def test_the_schedulers_own_claim_comes_on_top_of_those_a_pod_may_name() -> None:
    """Else a pod that names as many as it may would shed its fence by one extended resource."""
    refs = [builders.by_name(f"c{number}", f"c{number}") for number in range(MOST_CLAIMS)]
    raw = pod(container(), resourceClaims=refs)
    raw["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}
    item = builders.allocated(owned(builders.claim("c"), "uid-1"), builders.result(memory="1Gi"))
    found = dict.fromkeys((*(ref["name"] for ref in refs), EXTENDED), item)
    said = with_devices(read_pod(raw), found, BOUND)

    assert [Amount(GIB)] * (MOST_CLAIMS + 1) == amounts(said)


def test_a_claim_that_a_pod_names_twice_is_given_once() -> None:
    """Its containers use the same amount, by whichever of both names."""
    both = builders.claiming(container(), one="", other="")
    second = builders.claiming(container("second"), other="")
    refs = [builders.by_name("one", "c"), builders.by_name("other", "c")]
    item = builders.allocated(builders.claim("c"), builders.result(memory="3Gi"))
    raw = pod(both, second, resourceClaims=refs)
    said = with_devices(read_pod(raw), {"one": item, "other": item}, BOUND)

    assert [Amount(3 * GIB)] == amounts(said)
    assert all(each.uses("one", "gpu") for each in said.containers)


def test_memory_may_go_by_the_drivers_name() -> None:
    """`gpu.nvidia.com/memory` is the same as `memory`; of both the less counts."""
    asked = builders.request()
    asked["exactly"]["capacity"] = {"requests": {"gpu.nvidia.com/memory": "3000Mi"}}
    given = builders.result(consumedCapacity={"gpu.nvidia.com/memory": "3Gi"})
    twice = builders.result(consumedCapacity={"gpu.nvidia.com/memory": "3Gi", "memory": "2Gi"})

    assert [Amount(3000 * MIB)] == amounts(read(builders.claim("c", asked)))
    assert [Amount(3 * GIB), Amount(2 * GIB)] == amounts(
        read(builders.allocated(builders.claim("c", asked), given, twice), BOUND)
    )


def test_a_claim_of_its_template_is_the_pods_alone_at_first() -> None:
    """Until another one uses it by its name."""
    item = builders.allocated(owned(builders.claim("made"), "uid-1"), builders.result(memory="2Gi"))
    (device,) = read(item, BOUND, of_template("made")).devices

    assert ("uid-made", 1) == (device.group, device.sharers)


def test_who_uses_another_pods_claim_by_its_name_shares_it() -> None:
    """A scheduler lets it, and counts the claim once."""
    made = owned(builders.claim("c"), "uid-2")
    item = builders.allocated(made, builders.result(memory="2Gi"), users=("uid-1", "uid-2"))
    (device,) = read(item, BOUND).devices

    assert ("uid-c", 2) == (device.group, device.sharers)


@pytest.mark.parametrize(
    ("reading", "expected"), [(BOUND, 4 * GIB), (Reading("uid-3", cards=CARDS), 8 * GIB // 3)]
)
def test_frameworks_are_told_an_equal_part_of_what_several_pods_use(
    reading: Reading, expected: int
) -> None:
    """A pod that comes to a claim that others use counts itself; what is no amount has no part."""
    item = builders.allocated(
        builders.claim("c"), builders.result(memory="8Gi"), users=("uid-1", "uid-2")
    )
    said = with_parts(claiming(), {"gpu": item}, reading)

    whole = builders.allocated(
        builders.claim("c"),
        builders.result(),
        builders.result("gpu-1", shareID="s"),
        users=("uid-1", "uid-2"),
    )

    assert [Amount(expected)] == amounts(said)
    assert [WHOLE_CARD, UNKNOWN_AMOUNT] == amounts(with_parts(claiming(), {"gpu": whole}, BOUND))


def test_a_card_without_an_amount_is_what_the_policy_says() -> None:
    """Of a class of whole cards, and not where there are alternatives or instances."""
    instance = {"name": "gpu", "exactly": {"deviceClassName": "mig.nvidia.com"}}
    either = {"name": "gpu", "firstAvailable": [{"name": "any", **builders.request()["exactly"]}]}
    asked = [builders.request(), builders.request("2Gi"), instance, either]

    assert [True, False, False, False] == [
        read(builders.claim("c", item)).devices[0].by_policy for item in asked
    ]


def test_what_is_on_one_card_is_left() -> None:
    """On a card of which nothing is known to be the pod's all of it counts."""
    item = builders.allocated(
        builders.claim("c"), builders.result(memory="2Gi"), builders.result("gpu-1", memory="3Gi")
    )
    said = read(item, BOUND)

    assert [Amount(3 * GIB)] == amounts(on_card(said, "GPU-1"))
    assert said is on_card(said, "GPU-9")


def test_access_for_administrators_is_known_by_the_allocation() -> None:
    """Of a claim that nobody can read there is none."""
    item = builders.allocated(builders.claim("c"), builders.result(adminAccess=True))

    assert [True, False, False] == [
        has_admin_access(claiming(), found)
        for found in ({"gpu": item}, {"gpu": builders.claim("c")}, {"gpu": "does not exist"})
    ]


def test_the_schedulers_own_claim_serves_extended_resources() -> None:
    """What a container asks for as a resource is a request of the claim that the scheduler made."""
    raw = pod(container(**{"nvidia.com/gpu": "1"}))
    mapping = {"containerName": "main", "requestName": "r", "resourceName": "nvidia.com/gpu"}
    raw["status"] = {
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}
    }
    item = builders.allocated(
        owned(builders.claim("x"), "uid-1"), builders.result(memory="1Gi", name="r")
    )
    said = with_devices(read_pod(raw), {EXTENDED: item}, BOUND)

    assert [Amount(GIB)] == amounts(said)
    assert frozenset({"nvidia.com/gpu"}) == said.served
    assert [(EXTENDED, "r")] == [tuple(use) for use in said.containers[0].claims]
