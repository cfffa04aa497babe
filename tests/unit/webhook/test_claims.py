"""
Pods with resource claims: careful at create, exact when they are bound, silent where in doubt.
"""

import copy
from typing import Any

import pytest

from gpufence import names
from gpufence.cards import Card
from gpufence.devices import MOST_CLAIMS
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.nodes import GpuNode
from gpufence.plan import read_plan
from gpufence.pods import EXTENDED
from gpufence.quantity import GIB, MIB
from tests.support import claims
from tests.support.builders import T4_BYTES, container, pod
from tests.support.rewriting import POLICY, environment, rewritten_with_claims
from webhook.fleet import Fleet
from webhook.rewrite import Refusal, Unchanged, rewrite
from webhook.rewrite.binding import exact_values

NODE = GpuNode("node-1", {}, frozenset(), (), Units())
CARDS = {"gpu.nvidia.com/node-1/gpu-0": Card("GPU-0", 0, "Tesla T4", T4_BYTES, (7, 5))}
ASKED = claims.claim("c", claims.request("3000Mi"))


def claiming() -> dict[str, Any]:
    raw = pod(claims.claiming(container(), gpu=""), resourceClaims=[claims.by_name("gpu", "c")])
    raw["metadata"]["uid"] = "uid-1"
    return raw


def bound(made: dict[str, Any], claim: Any) -> dict[str, str]:
    return exact_values(copy.deepcopy(made), NODE, POLICY, {"gpu": claim}, CARDS)


def limit(annotations: dict[str, str]) -> int | None:
    return read_plan(annotations[names.PLAN]).limit_bytes


def test_what_is_asked_for_counts_until_what_was_consumed_is_known() -> None:
    """The values of the binding are larger and name the card that was allocated."""
    made = rewritten_with_claims(claiming(), {"gpu": ASKED})
    exact = bound(made, claims.allocated(ASKED, claims.result(memory="3Gi")))
    after = copy.deepcopy(made)
    after["metadata"]["annotations"] |= exact
    before = environment(made)[names.XLA_FRACTION]
    told = environment(after)[names.XLA_FRACTION]

    assert (3000 * MIB, 3 * GIB) == (limit(made["metadata"]["annotations"]), limit(exact))
    assert "Tesla T4 15360Mi" == exact[names.CARD]
    assert before is not None
    assert told is not None
    assert float(before) < float(told)


@pytest.mark.parametrize(
    "claim",
    [
        "does not exist",
        ASKED,
        claims.allocated(ASKED, claims.result(memory="3Gi"), users=("uid-2",)),
        claims.allocated(ASKED, claims.result(memory="3Gi") | {"driver": "nic.example.com"}),
        claims.allocated(ASKED, claims.result(memory="3Gi"), claims.result("gpu-9", memory="3Gi")),
    ],
)
def test_a_binding_in_doubt_leaves_the_careful_values(claim: Any) -> None:
    """
    A claim that is gone, not allocated, somebody else's or another driver's changes nothing, nor
    does one with a second device that nobody publishes: a fraction would be of the first card.
    """
    made = rewritten_with_claims(claiming(), {"gpu": ASKED})

    assert {} == bound(made, claim)


def test_a_claim_that_nobody_can_read_is_told_in_the_plan() -> None:
    """Even in evict nobody is refused for it: the claim may come later."""
    made = rewritten_with_claims(claiming(), {"gpu": "does not exist"}, Mode.EVICT)
    said = made["metadata"]["annotations"]

    assert "not fenced: resource claim c does not exist" == said[names.SUMMARY]
    assert limit(said) is None


def test_a_claim_without_an_amount_is_told_in_the_plan() -> None:
    """Its driver's policy decides, so that no figure is given."""
    made = rewritten_with_claims(claiming(), {"gpu": claims.claim("c", claims.request())})
    said = made["metadata"]["annotations"]

    assert "limit unknown on each card" in said[names.SUMMARY]
    assert limit(said) is None


def test_a_pod_with_devices_of_others_alone_is_left_alone() -> None:
    """A network card is none of ours."""
    nic = {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}
    said = rewrite(
        claiming(), Mode.EVICT, {}, Fleet(()), POLICY, claims={"gpu": claims.claim("c", nic)}
    )

    assert isinstance(said, Unchanged)


def test_pods_of_one_claim_are_told_equal_parts() -> None:
    """What their frameworks take together is within it."""
    made = rewritten_with_claims(claiming(), {"gpu": claims.claim("c", claims.request("8Gi"))})
    shared = claims.allocated(
        claims.claim("c"), claims.result(memory="8Gi"), users=("uid-1", "uid-2")
    )
    exact = bound(made, shared)

    assert 4 * GIB == limit(exact)
    assert "its part of a claim that 2 pods use" in exact[names.SUMMARY]


def test_a_pod_that_was_made_before_its_claim_has_an_exact_plan_when_it_is_bound() -> None:
    """It has no variables to write to, and the plan says who holds it."""
    made = rewritten_with_claims(claiming(), {"gpu": "does not exist"})
    exact = bound(made, claims.allocated(ASKED, claims.result(memory="3Gi")))

    assert 3 * GIB == limit(exact)
    assert not [key for key in exact if key.startswith(names.ENV_PREFIX)]
    assert "its agent alone holds it" in exact[names.SUMMARY]
    assert {} == bound(made, "does not exist")


def extended(resource: str, **annotations: str) -> dict[str, Any]:
    raw = pod(container(**{resource: "1"}), annotations=annotations)
    raw["metadata"]["uid"] = "uid-1"
    return raw


def served(made: dict[str, Any], resource: str, memory: str) -> dict[str, str]:
    """Bind a pod for whose resource the scheduler has made a claim."""
    mapping = {"containerName": "main", "requestName": "r", "resourceName": resource}
    status = {"resourceClaimName": "x", "requestMappings": [mapping]}
    item = claims.allocated(claims.claim("x"), claims.result(memory=memory, name="r"))
    item["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": "uid-1"}]
    raw = copy.deepcopy(made) | {"status": {"extendedResourceClaimStatus": status}}
    return exact_values(raw, NODE, POLICY, {EXTENDED: item}, CARDS)


def test_resources_that_name_a_class_are_exact_when_the_pod_is_bound() -> None:
    """Until then what the policy gives at least counts, and nothing where no node says so."""
    resource = f"{names.DRA_CLASS_PREFIX}{names.DRA_CLASSES[0]}"
    node = NODE._replace(cards=tuple(CARDS.values()), units=Units(claim_bytes=2 * GIB))
    fleet = Fleet([node])
    unknown = rewritten_with_claims(extended(resource), {})
    careful = rewritten_with_claims(extended(resource), {}, fleet=fleet)
    exact = [served(item, resource, "3Gi") for item in (unknown, careful)]

    assert limit(unknown["metadata"]["annotations"]) is None
    assert 2 * GIB == limit(careful["metadata"]["annotations"])
    assert [3 * GIB, 3 * GIB] == [limit(item) for item in exact]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "example.com/gpu"])
def test_what_a_claim_has_consumed_counts_beside_the_pods_own_word(resource: str) -> None:
    """Whatever the resource is called by which the scheduler came to make it."""
    made = rewritten_with_claims(extended(resource, **{names.MEMORY: "4Gi"}), {})
    exact = served(made, resource, "1Gi")
    after = copy.deepcopy(made)
    after["metadata"]["annotations"] |= exact

    assert (4 * GIB, GIB) == (limit(made["metadata"]["annotations"]), limit(exact))
    assert environment(made)[names.XLA_FRACTION] != environment(after)[names.XLA_FRACTION]


def test_nobody_is_refused_for_a_request_that_is_rounded_up() -> None:
    """It is a lower bound, unless the pod's own word holds it down."""
    little = {"gpu": claims.claim("c", claims.request("100Mi"))}
    made = rewritten_with_claims(claiming(), little, Mode.EVICT)
    tight = claiming()
    tight["metadata"]["annotations"] = {names.MEMORY: "100Mi"}

    assert "is too little" in made["metadata"]["annotations"][names.WARNINGS]
    assert isinstance(rewrite(tight, Mode.EVICT, {}, Fleet(()), POLICY, claims=little), Refusal)


def test_more_claims_than_anybody_reads_are_refused_in_evict() -> None:
    """Nobody could say what such a pod may hold, and that is its own doing."""
    refs = [claims.by_name(f"c{number}", "c") for number in range(MOST_CLAIMS + 1)]
    raw = pod(container(), resourceClaims=refs)
    said = rewrite(copy.deepcopy(raw), Mode.EVICT, {}, Fleet(()), POLICY)
    warned = rewritten_with_claims(raw, {})["metadata"]["annotations"]

    assert isinstance(said, Refusal)
    assert "more than the 8 that gpufence reads" in said.message
    assert "put several requests into one claim" in warned[names.WARNINGS]
