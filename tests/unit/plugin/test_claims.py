"""What doctor and explain say of cards that come by resource claims."""

from typing import Any

from gpufence.errors import Finding, Level
from gpufence.pods import EXTENDED
from gpufence.quantity import GIB
from kubectl_gpufence.pods import SeenPod, see_pod
from kubectl_gpufence.verbs.doctor.checks_agents import check_claims
from kubectl_gpufence.verbs.doctor.installation import (
    Installation,
    LabelledNamespace,
    MaybeHidden,
    ServedClass,
    SliceCards,
    read_class,
    read_published,
)
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.view import Display
from tests.support import builders
from tests.support.builders import container, pod
from tests.support.plugin import agent
from tests.support.rewriting import rewritten_with_claims

SHARED = SliceCards("node-1", 2, 2)


def seen(item: Any, *, named: bool = True) -> SeenPod:
    """See a pod with one claim, as the webhook left it and the API server shows the claim."""
    ref = builders.by_name("gpu", "c") if named else builders.by_template("gpu", "t")
    raw = pod(builders.claiming(container(), gpu=""), resourceClaims=[ref])
    raw["metadata"]["uid"] = "uid-1"
    made = rewritten_with_claims(raw, {"gpu": item})
    return see_pod(made, None, {}, {"gpu": item})


def record(item: Any, **more: Any) -> str:
    return "\n".join(explanation(PodRecord(seen(item, **more), mode="cap"), Display(200)))


def findings(*published: SliceCards, **more: Any) -> list[Finding]:
    given: dict[str, Any] = {
        "agents": MaybeHidden({"node-1": agent(None)}),
        "published": MaybeHidden(list(published)),
    }
    return list(check_claims(Installation(0, **given | more)))


def with_pods(*pods: SeenPod) -> dict[str, Any]:
    return {
        "namespaces": MaybeHidden([LabelledNamespace("team-a", "cap")]),
        "pods": MaybeHidden(list(pods)),
    }


def test_a_story_tells_what_each_claim_asks_for_and_has_got() -> None:
    """Who uses it, how much of which device, and with how many others."""
    asked = record(builders.claim("c", builders.request("3Gi")))
    given = builders.allocated(
        builders.claim("c"), builders.result(memory="3Gi"), users=("uid-1", "uid-2", "uid-3")
    )

    assert "resource claim c, used by main" in asked
    assert "request gpu: 3072Mi of a device that is not chosen yet" in asked
    assert "3072Mi of gpu.nvidia.com/node-1/gpu-0, together with 2 other pods" in record(given)
    assert "all of gpu.nvidia.com/node-1/gpu-0" in record(
        builders.allocated(builders.claim("c"), builders.result())
    )
    assert "an unspecified amount of" in record(builders.claim("c", builders.request()))


def test_a_story_tells_of_claims_that_nobody_uses_or_knows() -> None:
    """The doubt is told in the words of the plan."""
    ref = builders.by_name("gpu", "c")
    unused = see_pod(pod(container(), resourceClaims=[ref]), None, {}, {})
    told = "\n".join(explanation(PodRecord(unused), Display(200)))

    assert "resource claim c, which no container uses" in told
    assert (
        "the amount of its claims is unknown: its resource claims (DRA) have not been read" in told
    )
    assert (
        "the amount of its claims is unknown: resource claim template t does not exist"
        in record("does not exist", named=False)
    )


def test_a_story_tells_of_the_claim_that_the_scheduler_made() -> None:
    """And for which resources."""
    mapping = {"containerName": "main", "requestName": "r", "resourceName": "example.com/gpu"}
    raw = pod(container())
    raw["metadata"]["uid"] = "uid-1"
    raw["status"] = {
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}
    }
    item = builders.allocated(builders.claim("x"), builders.result(memory="1Gi", name="r"))
    item["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": "uid-1"}]
    told = "\n".join(explanation(PodRecord(see_pod(raw, None, {}, {EXTENDED: item})), Display(200)))

    assert "resource claim x, made by the scheduler for example.com/gpu, used by main" in told
    assert "1024Mi of gpu.nvidia.com/node-1/gpu-0" in told


def test_each_claim_has_its_own_devices() -> None:
    """What one claim gives is not told below another one."""
    refs = [builders.by_name(name, f"claim-{name}") for name in ("a", "b")]
    raw = pod(builders.claiming(container(), a="", b=""), resourceClaims=refs)
    asked = {
        name: builders.claim(f"claim-{name}", builders.request(amount))
        for name, amount in (("a", "1Gi"), ("b", "2Gi"))
    }
    told = "\n".join(explanation(PodRecord(see_pod(raw, None, {}, asked)), Display(200)))

    assert told.index("claim-a") < told.index("1024Mi") < told.index("claim-b")
    assert told.index("claim-b") < told.index("2048Mi")


def test_a_claim_with_two_names_is_told_once() -> None:
    """By the first of them."""
    refs = [builders.by_name(name, "one") for name in ("a", "b")]
    raw = pod(builders.claiming(container(), a="", b=""), resourceClaims=refs)
    asked = dict.fromkeys(("a", "b"), builders.claim("one", builders.request("1Gi")))
    told = "\n".join(explanation(PodRecord(see_pod(raw, None, {}, asked)), Display(200)))

    assert 1 == told.count("resource claim one")


def test_a_slice_of_another_driver_has_no_cards() -> None:
    """Of ours those count as shared that several claims may have."""
    devices = [{"name": "gpu-0", "allowMultipleAllocations": True}, {"name": "gpu-1"}]
    ours = {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": devices}}
    other = {"spec": {"driver": "nic.example.com", "nodeName": "n", "devices": devices}}

    assert [SliceCards("n", 2, 1), SliceCards("n", 0, 0)] == [
        read_published(item) for item in (ours, other)
    ]


def test_a_cluster_without_claims_is_not_spoken_of() -> None:
    """Neither where nothing is published nor where the kind does not exist."""
    assert [] == findings(SliceCards("n", 0, 0))
    assert [] == findings(published=MaybeHidden())


def test_a_node_with_cards_for_claims_needs_an_agent() -> None:
    """With agents everywhere it is said how many cards are shared."""
    (good,) = findings(SHARED)
    (whole,) = findings(SliceCards("node-1", 2, 0))
    (bad,) = findings(SHARED, SliceCards("node-2", 1, 1))

    assert (Level.OK, "1 node with cards for claims, 2 cards shared by memory") == (
        good.level,
        good.text,
    )
    assert whole.text.endswith("none of them shared")
    assert (Level.WRONG, "1 node with cards for claims without an agent: node-2") == (
        bad.level,
        bad.text,
    )


def test_what_may_not_be_seen_is_unknown() -> None:
    """Slices, and agents, are for administrators."""
    (hidden,) = findings(published=MaybeHidden(hidden="you may not see them"))
    (without,) = findings(SHARED, agents=MaybeHidden(hidden="you may not see agents"))

    assert [Level.UNKNOWN, Level.OK] == [hidden.level, without.level]


def test_pods_that_were_told_nothing_are_named() -> None:
    """Their agents know more than the webhook did."""
    good = seen(builders.claim("c", builders.request("3Gi")))
    doubtful = seen("does not exist")

    assert 3 * GIB == good.limit_bytes
    assert [Level.OK] == [item.level for item in findings(**with_pods(good))]
    assert ["1 pod with claims and no configured value: team-a/train-1"] == [
        item.text for item in findings(**with_pods(good, doubtful))
    ]
    assert [] == findings(**with_pods())


def test_pods_with_claims_of_other_devices_are_not_spoken_of() -> None:
    """The webhook leaves them alone, so that they have no limit to speak of."""
    raw = pod(container(), resourceClaims=[builders.by_name("nic", "c")])

    assert [] == findings(**with_pods(see_pod(raw, None, {}, {})))


def test_a_resource_that_is_served_by_shared_cards_is_worth_a_look() -> None:
    """Who asks for a card gets what the policy says; where none is shared it is a card."""
    classes = MaybeHidden(
        [
            ServedClass("gpu.nvidia.com", "nvidia.com/gpu", gpus=True),
            ServedClass("mig.nvidia.com", "", gpus=True),
            ServedClass("nic.example.com", "example.com/nic"),
        ]
    )
    (_, found) = findings(SHARED._replace(least_bytes=GIB), classes=classes)
    whole = findings(SHARED, classes=classes)

    assert found.level is Level.LOOK
    assert "nvidia.com/gpu is served by claims of class gpu.nvidia.com" in found.text
    assert "as little as 1024Mi of a card" in found.text
    assert [Level.OK] == [item.level for item in whole]


def test_classes_are_read_for_what_matters() -> None:
    """Which resource stands for a class, and whether its devices are cards."""
    spec = {"extendedResourceName": "example.com/gpu"}
    served = {"metadata": {"name": "c"}, "spec": spec}
    ours = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    shared = {"metadata": {"name": "s"}, "spec": {**spec, "selectors": ours}}

    assert [
        ServedClass("c", "example.com/gpu"),
        ServedClass("s", "example.com/gpu", gpus=True),
        ServedClass("gpu.nvidia.com", "", gpus=True),
        ServedClass("", ""),
    ] == [read_class(item) for item in (served, shared, builders.device_class(), {})]
