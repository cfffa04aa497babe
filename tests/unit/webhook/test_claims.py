"""Pods with resource claims, and those whose cards are shown to them as their limit."""

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
from tests.support import builders
from tests.support.builders import T4_BYTES, card, container, gpushare, node, pod
from tests.support.rewriting import POLICY, environment, gpu_node, rewritten, rewritten_with_claims
from webhook.fleet import Fleet
from webhook.rewrite import Refusal, Unchanged, rewrite
from webhook.rewrite.binding import exact_values

NODE = GpuNode("node-1", {}, frozenset(), (), Units())
CARDS = {"gpu.nvidia.com/node-1/gpu-0": Card("GPU-0", 0, "Tesla T4", T4_BYTES, (7, 5))}
ASKED = builders.claim("c", builders.request("3000Mi"))


def claiming() -> dict[str, Any]:
    raw = pod(builders.claiming(container(), gpu=""), resourceClaims=[builders.by_name("gpu", "c")])
    raw["metadata"]["uid"] = "uid-1"
    return raw


def bound(made: dict[str, Any], claim: Any) -> dict[str, str]:
    return exact_values(copy.deepcopy(made), NODE, POLICY, {"gpu": claim}, CARDS)


def limit(annotations: dict[str, str]) -> int | None:
    return read_plan(annotations[names.PLAN]).limit_bytes


def test_what_is_asked_for_counts_until_what_was_consumed_is_known() -> None:
    """The values of the binding are larger and name the card that was allocated."""
    made = rewritten_with_claims(claiming(), {"gpu": ASKED})
    exact = bound(made, builders.allocated(ASKED, builders.result(memory="3Gi")))
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
        builders.allocated(ASKED, builders.result(memory="3Gi"), users=("uid-2",)),
        builders.allocated(ASKED, builders.result(memory="3Gi") | {"driver": "nic.example.com"}),
        builders.allocated(
            ASKED, builders.result(memory="3Gi"), builders.result("gpu-9", memory="3Gi")
        ),
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
    made = rewritten_with_claims(claiming(), {"gpu": builders.claim("c", builders.request())})
    said = made["metadata"]["annotations"]

    assert "limit unknown on each card" in said[names.SUMMARY]
    assert limit(said) is None


def test_a_pod_with_devices_of_others_alone_is_left_alone() -> None:
    """A network card is none of ours."""
    nic = {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}
    said = rewrite(
        claiming(), Mode.EVICT, {}, Fleet(()), POLICY, claims={"gpu": builders.claim("c", nic)}
    )

    assert isinstance(said, Unchanged)


def test_pods_of_one_claim_are_told_equal_parts() -> None:
    """What their frameworks take together is within it."""
    made = rewritten_with_claims(claiming(), {"gpu": builders.claim("c", builders.request("8Gi"))})
    shared = builders.allocated(
        builders.claim("c"), builders.result(memory="8Gi"), users=("uid-1", "uid-2")
    )
    exact = bound(made, shared)

    assert 4 * GIB == limit(exact)
    assert "its part of a claim that 2 pods use" in exact[names.SUMMARY]


def test_a_pod_that_was_made_before_its_claim_has_an_exact_plan_when_it_is_bound() -> None:
    """It has no variables to write to, and the plan says who holds it."""
    made = rewritten_with_claims(claiming(), {"gpu": "does not exist"})
    exact = bound(made, builders.allocated(ASKED, builders.result(memory="3Gi")))

    assert 3 * GIB == limit(exact)
    assert not [key for key in exact if key.startswith(names.ENV_PREFIX)]
    assert "only its agent enforces it" in exact[names.SUMMARY]
    assert {} == bound(made, "does not exist")


def extended(resource: str, **annotations: str) -> dict[str, Any]:
    raw = pod(container(**{resource: "1"}), annotations=annotations)
    raw["metadata"]["uid"] = "uid-1"
    return raw


def served(made: dict[str, Any], resource: str, memory: str) -> dict[str, str]:
    """Bind a pod for whose resource the scheduler has made a claim."""
    mapping = {"containerName": "main", "requestName": "r", "resourceName": resource}
    status = {"resourceClaimName": "x", "requestMappings": [mapping]}
    item = builders.allocated(builders.claim("x"), builders.result(memory=memory, name="r"))
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
    little = {"gpu": builders.claim("c", builders.request("100Mi"))}
    made = rewritten_with_claims(claiming(), little, Mode.EVICT)
    tight = claiming()
    tight["metadata"]["annotations"] = {names.MEMORY: "100Mi"}

    assert "is too little" in made["metadata"]["annotations"][names.WARNINGS]
    assert isinstance(rewrite(tight, Mode.EVICT, {}, Fleet(()), POLICY, claims=little), Refusal)


def test_more_claims_than_anybody_reads_are_refused_in_evict() -> None:
    """Nobody could say what such a pod may hold, and that is its own doing."""
    refs = [builders.by_name(f"c{number}", "c") for number in range(MOST_CLAIMS + 1)]
    raw = pod(container(), resourceClaims=refs)
    said = rewrite(copy.deepcopy(raw), Mode.EVICT, {}, Fleet(()), POLICY)
    warned = rewritten_with_claims(raw, {})["metadata"]["annotations"]

    assert isinstance(said, Refusal)
    assert "more than the 8 that gpufence reads" in said.message
    assert "put several requests into one claim" in warned[names.WARNINGS]


SHARED = {names.KAI_MEMORY: "4096"}
VOLUME = {"name": "kai-resource-isolator-vgpu", "hostPath": {"path": "/usr/local/vgpu"}}
LIMIT = {"name": names.CUDA_LIMIT, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}


def shared(item: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Build a pod that KAI gives a share of a card."""
    made = pod(item or container("main"), annotations={**SHARED, **changes.pop("said", {})})
    made["spec"].update(changes)
    return made


@pytest.mark.parametrize(
    "item",
    [
        shared(volumes=[VOLUME]),
        shared(container("main") | {"env": [LIMIT]}),
        shared(said={names.KAI_ISOLATE: "true"}),
        shared(said={"nvidia.com/container.main.gpu-memory.limit": "4Gi"}),
        shared(said={"nvidia.com/container.main.gpu-memory.request": "4Gi"}),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "cgpu"}),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "core_mem"}),
        pod(container("main", **{names.GPUSHARE_MEMORY: "3", names.GPUSHARE_CORES: "20"})),
    ],
)
def test_an_isolated_pod_is_told_nothing(item: dict[str, Any]) -> None:
    """Where the isolator shows the limit as the card, no variable is set, as by HAMi's library."""
    result, said = rewritten(item)

    assert "capped by its own library, so nothing is injected" in said.summary
    assert item["spec"]["containers"] == result["spec"]["containers"]


@pytest.mark.parametrize(
    "item",
    [
        shared(),
        shared(said={names.KAI_ISOLATE: "false"}, volumes=[VOLUME]),
        shared(volumes=[{"name": "data", "emptyDir": {}}]),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "share"}),
    ],
)
def test_a_pod_that_nothing_isolates_is_told(item: dict[str, Any]) -> None:
    """A share of a card without an isolator is told like any other."""
    _, said = rewritten(item)

    assert "variables say main" in said.summary


@pytest.mark.parametrize("labels", [{names.ACK_SCHEDULE: "cgpu"}, {names.ACK_CGPU: "true"}])
def test_a_node_may_isolate(labels: dict[str, str]) -> None:
    """Where all nodes that a pod may meet isolate memory, it is told nothing."""
    manifest = node()
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), **labels}
    _, said = rewritten(pod(gpushare("main", 3)), fleet=Fleet([gpu_node(manifest)]))

    assert "capped by its own library" in said.summary


def test_cores_alone_declare_no_memory() -> None:
    """A share of a card's cores is no amount of memory."""
    _, said = rewritten(pod(container("main", **{names.GPUSHARE_CORES: "20"})))

    assert said.summary.startswith("not fenced: no container asks for GPU memory")


@pytest.mark.parametrize(
    "said",
    [{names.KAI_MEMORY: "4096"}, {names.KAI_FRACTION: "0.25"}],
    ids=["an amount", "a share"],
)
def test_a_fraction_does_not_apply_twice_where_the_driver_holds_the_pod(
    said: dict[str, str],
) -> None:
    """
    A pod that was told its share and then gets KAI's word for the driver sees its limit as the
    card: at binding it is told a fraction of that.
    """
    where = gpu_node(node(card(memory_bytes=16 * GIB), name="a"))
    bound = rewritten(pod(container("main"), annotations=said), fleet=Fleet([where]))[0]
    before = environment(bound)[names.XLA_FRACTION]
    bound["metadata"]["annotations"]["nvidia.com/container.main.gpu-memory.limit"] = "4Gi"
    bound["metadata"]["annotations"] |= exact_values(bound, where, POLICY)

    assert ("0.175000", "0.700000") == (before, environment(bound)[names.XLA_FRACTION])
    assert str(4 * GIB * 7 // 10) == environment(bound)[names.CUPY_LIMIT]


DRIVEN = "nvidia.com/container.main"
BY_BINDER = {f"{DRIVEN}{names.KAI_GIVEN}": "GPU-1"}
UP_TO_8 = {f"{DRIVEN}{names.KAI_REQUEST}": "4Gi", f"{DRIVEN}{names.KAI_LIMIT}": "8Gi"}


@pytest.mark.parametrize(
    ("said", "by_binder", "limit"),
    [
        ({names.KAI_FRACTION: "0.25"}, {**UP_TO_8, **BY_BINDER}, 8),
        ({names.KAI_FRACTION: "0.25"}, UP_TO_8, 4),
        ({names.KAI_MEMORY: "4096"}, {f"{DRIVEN}{names.KAI_REQUEST}": "3Gi", **BY_BINDER}, 3),
    ],
    ids=["a limit that KAI's binder has seen", "a limit of its own", "a smaller request"],
)
def test_what_a_pod_was_told_becomes_a_part_of_what_the_driver_holds_it_to(
    said: dict[str, str], by_binder: dict[str, str], limit: int
) -> None:
    """
    At binding the limit is the card that the container sees, and it may raise what KAI has counted
    only where KAI's binder has given the pod its cards.
    """
    where = gpu_node(node(card(memory_bytes=16 * GIB), name="a"))
    bound = rewritten(pod(container("main"), annotations=said), fleet=Fleet([where]))[0]
    bound["metadata"]["annotations"] |= by_binder
    bound["metadata"]["annotations"] |= exact_values(bound, where, POLICY)

    assert "0.700000" == environment(bound)[names.XLA_FRACTION]
    assert str(limit * GIB * 7 // 10) == environment(bound)[names.CUPY_LIMIT]


def test_a_pod_that_says_nothing_else_is_known_by_what_the_driver_holds_it_to() -> None:
    """KAI's own way to ask for memory in that mode is a declaration like any other."""
    _, said = rewritten(pod(container("main"), annotations=UP_TO_8))

    assert ("kai", 4 * GIB) == (said.plan.dialect, said.plan.limit_bytes)
    assert "capped by its own library" in said.summary


def test_nobody_but_kais_binder_gives_a_pod_its_cards() -> None:
    """What would confirm a limit is taken from a pod that is created with it."""
    made, said = rewritten(pod(container("main"), annotations={**UP_TO_8, **BY_BINDER}))

    assert BY_BINDER.keys().isdisjoint(made["metadata"]["annotations"])
    assert UP_TO_8.items() <= made["metadata"]["annotations"].items()
    assert any(names.KAI_GIVEN in each for each in said.warnings)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({names.KAI_CONTAINER: "main"}, "kai: limit 4096Mi"),
        ({names.KAI_CONTAINER: "gone"}, "gone"),
        ({f"{names.KAI_OF_CONTAINER}gone{names.KAI_LIMIT}": "4Gi"}, "gone"),
    ],
)
def test_the_container_of_a_share_is_the_one_that_is_named(said: dict[str, str], told: str) -> None:
    """One that the pod does not have is a mistake, which the summary names."""
    _, rewrite = rewritten(shared(said=said))

    assert told in rewrite.summary


def test_a_share_of_two_containers_is_a_mistake() -> None:
    """The pod names one, and the keys of its driver another."""
    said = {names.KAI_CONTAINER: "side", f"{names.KAI_OF_CONTAINER}main{names.KAI_LIMIT}": "4Gi"}
    item = pod(container("main"), container("side"), annotations={**SHARED, **said})
    _, rewrite = rewritten(item)

    assert names.KAI_CONTAINER in rewrite.summary
