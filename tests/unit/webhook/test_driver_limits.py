"""To how much the driver is to hold a container, and why it is not."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import MIB
from tests.support import builders
from tests.support.builders import A100_BYTES, card, container, gpushare, node, pod
from tests.support.rewriting import (
    environment,
    gpu_node,
    rewritten,
    rewritten_with_claims,
)
from webhook.fleet import Fleet
from webhook.policy import DriverLimits, WebhookPolicy

ON = WebhookPolicy(driver_limits=DriverLimits.ON)
OFF = WebhookPolicy()
AUTO = replace(ON, driver_limits=DriverLimits.AUTO)
LABELLED = replace(ON, driver_limits=DriverLimits.LABELLED)
YES = {names.DRIVER_LIMITS: "true"}
NEW = "615.71.09"
REQUIREMENT = {"key": names.DRIVER_LIMITS, "operator": "In", "values": ["true"]}
NOT_HELD = "; not held by the driver: "
MIG = "it may get a MIG instance, which the driver holds to no limit"
OLD = "a node that it may get has a driver before 615"
UNREADABLE = "its limit is not known on every node that it may get"
LIBRARY = "on some nodes that it may get a library holds it"
UNSTATED = (
    "its limit follows from the card, and a node that it may get, or one that is not there yet, "
    "has no agent that says how large its cards are"
)
UNCERTAIN = "a card that it may get can be smaller than its limit"
TOO_LARGE = "no card that it may get is known to be as large as its limit"
DIFFERS = "its limit is another on other cards that it may get, and the variable is the same on all"
NO_NODE = f"no GPU node that the pod may get has the label {names.DRIVER_LIMITS}"
TINY = "its limit is below 1 MiB"
OFFERED = {
    **dict.fromkeys((names.NVIDIA_GPU, names.GPUSHARE_MEMORY, names.VOLCANO_MEMORY), "15"),
    f"{names.NVIDIA_MIG_PREFIX}1g.5gb": "1",
}


def fleet_of(*nodes: dict[str, Any]) -> Fleet:
    return Fleet([gpu_node(each) for each in nodes])


def sized(*sizes: int, name: str = "a", driver: str = NEW, **labels: str) -> dict[str, Any]:
    """Build a node whose agent states cards of these sizes in MiB."""
    cards = [card(at, memory_bytes=size * MIB) for at, size in enumerate(sizes)]
    offered = {
        **OFFERED,
        names.GPUSHARE_MEMORY: str(sum(size // 1024 for size in sizes)),
        names.GPUSHARE_COUNT: str(len(sizes)),
    }
    return node(*cards, name=name, driver=driver, labels=labels, allocatable=offered)


def labels_only(**labels: str) -> dict[str, Any]:
    return node(
        name="l",
        labels={getattr(names, key): text for key, text in labels.items()},
        allocatable=OFFERED,
    )


def shared(memory: str = "", **spec: Any) -> dict[str, Any]:
    """Build a pod on a shared card, which says its amount itself or not at all."""
    said = {names.MEMORY: memory} if memory else {}
    return pod(container(**{names.NVIDIA_GPU: "1"}), annotations=said, **spec)


def quarter(**spec: Any) -> dict[str, Any]:
    return pod(container(), annotations={names.KAI_FRACTION: "0.25"}, **spec)


def limit_of(
    asked: dict[str, Any], fleet: Fleet, policy: WebhookPolicy = ON, namespace: Any = None
) -> str:
    """Return the limit that is written, or why none is."""
    result, said = rewritten(asked, namespace=namespace, fleet=fleet, policy=policy)
    env = environment(result)
    if names.DRIVER_LIMIT in env:
        assert "0" == env[names.DRIVER_REQUEST]
        return str(env[names.DRIVER_LIMIT])
    return said.summary.partition(NOT_HELD)[2].partition(";")[0]


T4 = sized(15360)
TWO = fleet_of(T4, sized(40960, name="b"))
GROWING = {names.KARPENTER_POOL: "gpus"}
SILENT, L4 = labels_only(), labels_only(EKS_ACCELERATOR="nvidia-l4")
SAID_16 = labels_only(KARPENTER_GPU_MEMORY="16384", KARPENTER_GPU_NAME="t4")
MEASURED = labels_only(GFD_MEMORY="15360")
GROWS = sized(15360, **GROWING)
OF_16 = {names.KARPENTER_GPU_MEMORY: "16384"}
NEARLY = sized(15079, name="b")
BETWEEN, LARGE = sized(24576, name="m"), sized(40960, name="n")
ALIKE = sized(15200, name="m")
OLD_ONE = sized(15360, name="b", driver="580.95.05")
INSTANCE = node(card(profile="1g.5gb", parent="x"), driver=NEW, allocatable=OFFERED)
BY_MPS = sized(15360, name="b", **{names.GKE_SHARING: "mps", names.GKE_CLIENTS: "4"})
NO_UNIT = node(card(memory_bytes=A100_BYTES), name="b", driver=NEW) | {
    "status": {"allocatable": {names.GPUSHARE_MEMORY: "7"}}
}
EARLY = pod(gpushare(), init=[gpushare("early", "14")])
LITTLE = pod(container(), annotations={names.KAI_FRACTION: "0.00005"})
HARDLY = pod(container(), annotations={names.KAI_FRACTION: "0.0000655"})
HAMI = pod(container(**{names.HAMI_MEMORY: "3000", names.NVIDIA_GPU: "1"}))
ONE = fleet_of(T4)


def units(amount: int = 3, **spec: Any) -> dict[str, Any]:
    return pod(gpushare(units=f"{amount}"), **spec)


@pytest.mark.parametrize(
    ("asked", "fleet", "expected"),
    [
        pytest.param(units(), ONE, "3072", id="an amount"),
        pytest.param(units(15), ONE, "", id="all of the card"),
        pytest.param(units(20), TWO, "20480", id="too much for some cards"),
        pytest.param(units(50), TWO, TOO_LARGE, id="too much for all cards"),
        pytest.param(units(15), Fleet(()), "15360", id="placed where it fits"),
        pytest.param(units(300), Fleet(()), TOO_LARGE, id="wrong unit"),
        pytest.param(EARLY, fleet_of(SILENT), "3072", id="its init container is not counted"),
        pytest.param(units(9, nodeName="l"), fleet_of(SILENT), UNCERTAIN, id="named, not counted"),
        pytest.param(units(9, nodeName="a"), ONE, "9216", id="named node"),
        pytest.param(shared("3000.5Mi"), TWO, "3000", id="rounded down"),
        pytest.param(LITTLE, ONE, TINY, id="no whole MiB"),
        pytest.param(shared("1Mi"), ONE, "1", id="one whole MiB"),
        pytest.param(HARDLY, fleet_of(T4, ALIKE), TINY, id="no whole MiB of one card"),
        pytest.param(shared("16Gi"), ONE, "", id="more than any card"),
        pytest.param(shared("20Gi"), TWO, DIFFERS, id="more than some cards"),
        pytest.param(shared("15300Mi"), fleet_of(T4, NEARLY), "15079", id="nearly equal"),
        pytest.param(shared("15300Mi"), fleet_of(sized(15360, 15079)), "15079", id="on one node"),
        pytest.param(shared(), ONE, "", id="whole card that is not fenced"),
        pytest.param(shared("8Gi"), fleet_of(SILENT), UNCERTAIN, id="silent"),
        pytest.param(shared("900Mi"), fleet_of(SILENT), "900", id="below any card"),
        pytest.param(shared("14Gi"), fleet_of(SAID_16), "14336", id="below what a label allows"),
        pytest.param(shared("15Gi"), fleet_of(SAID_16), UNCERTAIN, id="a label says more"),
        pytest.param(shared("4Gi"), fleet_of(L4), UNCERTAIN, id="a name may be that of a part"),
        pytest.param(shared("15Gi"), fleet_of(MEASURED), "15360", id="measured"),
        pytest.param(shared("8Gi"), fleet_of(GROWS), UNCERTAIN, id="nodes come and go"),
        pytest.param(
            shared("8Gi", nodeSelector=OF_16),
            fleet_of(sized(15360, **GROWING, **OF_16)),
            "8192",
            id="as its selector has them",
        ),
        pytest.param(units(9), fleet_of(GROWS), "9216", id="counted"),
        pytest.param(quarter(), ONE, "3840", id="a share"),
        pytest.param(quarter(), TWO, DIFFERS, id="a share of unequal cards"),
        pytest.param(quarter(), fleet_of(T4, MEASURED), UNSTATED, id="of a card unstated"),
        pytest.param(quarter(), fleet_of(GROWS), UNSTATED, id="a share of a card to come"),
        pytest.param(shared("3Gi"), fleet_of(T4, OLD_ONE), OLD, id="an old driver"),
        pytest.param(
            shared("3Gi"), fleet_of(sized(15360, driver="unknown")), "3072", id="a strange version"
        ),
        pytest.param(shared("3Gi"), fleet_of(INSTANCE), MIG, id="MIG"),
        pytest.param(shared("3Gi"), fleet_of(T4, BY_MPS), "3072", id="MPS holds processes"),
        pytest.param(units(24), fleet_of(T4, BETWEEN, LARGE), "24576", id="sizes between"),
        pytest.param(quarter(), fleet_of(T4, ALIKE, NEARLY), "3769", id="shares between"),
        pytest.param(units(), fleet_of(T4, NO_UNIT), UNREADABLE, id="an unknown unit"),
        pytest.param(HAMI, ONE, "", id="a library holds it"),
    ],
)
def test_what_is_written_is_right_on_every_card(
    asked: dict[str, Any], fleet: Fleet, expected: str
) -> None:
    """A limit that is right on every card that the pod may get is written, of others why not."""
    assert expected == limit_of(asked, fleet)


@pytest.mark.parametrize(
    ("clients", "driver", "expected"),
    [("1", NEW, ""), ("4", NEW, "3840"), ("4", "", UNSTATED)],
)
def test_implied_limits_follow_from_the_card(clients: str, driver: str, expected: str) -> None:
    """An implied share is known where the card is; a whole card is held to nothing."""
    labels = {names.GFD_REPLICAS: clients}
    where = sized(15360, driver=driver, **labels) if driver else labels_only(GFD_REPLICAS=clients)

    assert expected == limit_of(
        shared(), fleet_of(where), namespace={names.IMPLIED_LIMITS: "enabled"}
    )


def test_a_share_that_mps_holds_on_some_nodes_is_left_to_it() -> None:
    """Where a server of MPS holds each process to the share, the driver is asked for nothing."""
    where = [
        sized(15360, name=strategy, **{names.GFD_REPLICAS: "4", names.GFD_SHARING: strategy})
        for strategy in ("time-slicing", "mps")
    ]

    assert LIBRARY == limit_of(
        shared(), fleet_of(*where), namespace={names.IMPLIED_LIMITS: "enabled"}
    )


def required(result: dict[str, Any]) -> Any:
    """Return what a pod requires of its node."""
    found = result["spec"].get("affinity", {}).get("nodeAffinity", {})
    return found.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")


def requiring(*terms: object, **beside: object) -> dict[str, Any]:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": {**rule, **beside}}


MIXED = fleet_of(sized(15360, **YES), sized(40960, name="b", zone="x"))
ZONE = {"key": "zone", "operator": "DoesNotExist"}
AT_A = {"key": "metadata.name", "operator": "In", "values": ["a"]}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, [{"matchExpressions": [REQUIREMENT]}]),
        ({}, [{"matchExpressions": [REQUIREMENT]}]),
        ({"nodeAffinity": {}}, [{"matchExpressions": [REQUIREMENT]}]),
        (
            requiring({"matchExpressions": [ZONE]}, {"matchFields": [AT_A]}, {}),
            [
                {"matchExpressions": [ZONE, REQUIREMENT]},
                {"matchFields": [AT_A], "matchExpressions": [REQUIREMENT]},
                {},
            ],
        ),
        (
            requiring({"matchExpressions": [REQUIREMENT]}),
            [{"matchExpressions": [REQUIREMENT]}],
        ),
    ],
)
def test_each_term_requires_the_label(affinity: Any, expected: Any) -> None:
    """Where nodes are labelled, no way is left by which the pod gets another."""
    asked = shared("3Gi", affinity=affinity)
    result, said = rewritten(asked, fleet=MIXED, policy=LABELLED)

    assert expected == required(result)
    assert "3072" == environment(result)[names.DRIVER_LIMIT]
    assert "for a card of 15360Mi" in said.summary


@pytest.mark.parametrize(
    ("spec", "why_not"),
    [
        ({"affinity": requiring({"matchExpressions": [{**ZONE, "operator": "Exists"}]})}, "label"),
        ({"affinity": requiring(*[{"matchExpressions": [ZONE]}] * 200)}, "too long"),
        ({"affinity": requiring({})}, "label"),
        ({"nodeName": "b"}, "label"),
        ({"nodeName": "unknown"}, "label"),
    ],
)
def test_nothing_is_required_where_nothing_is_held(spec: Any, why_not: str) -> None:
    """A pod that gets no node with the label is changed as before, and the summary says why."""
    asked = shared("3Gi", **spec)
    result, said = rewritten(asked, fleet=MIXED, policy=LABELLED)
    before, _ = rewritten(asked, fleet=MIXED, policy=WebhookPolicy())

    assert before["spec"] == result["spec"]
    assert why_not in said.summary.partition(NOT_HELD)[2]


@pytest.mark.parametrize("spec", [{"nodeName": "a"}, {"nodeSelector": YES}])
def test_a_pod_on_a_labelled_node_requires_nothing_more(spec: Any) -> None:
    """Where the pod says already that its node has the label, its affinity stays."""
    result, _ = rewritten(shared("3Gi", **spec), fleet=MIXED, policy=LABELLED)

    assert "3072" == environment(result)[names.DRIVER_LIMIT]
    assert None is required(result)


PROVED = sized(15360, **YES)
NO_LABEL = f"a node that it may get, now or later, may lack {names.DRIVER_LIMITS}"
REQUIRED = requiring({"matchExpressions": [REQUIREMENT]})


@pytest.mark.parametrize(
    ("spec", "fleet", "expected"),
    [
        pytest.param({}, fleet_of(PROVED, sized(15360, name="b", **YES)), "3072", id="all proved"),
        pytest.param({}, MIXED, NO_LABEL, id="one is not"),
        pytest.param({"nodeSelector": YES}, MIXED, "3072", id="by its own selector"),
        pytest.param({"affinity": REQUIRED}, MIXED, "3072", id="by its own affinity"),
        pytest.param({"nodeName": "a"}, MIXED, "3072", id="on a proved node"),
        pytest.param({"nodeName": "b"}, MIXED, NO_NODE, id="on another"),
        pytest.param({}, fleet_of(T4), NO_NODE, id="none is proved"),
        pytest.param({}, Fleet(()), NO_NODE, id="no node"),
        pytest.param({}, fleet_of(sized(15360, **YES, **GROWING)), NO_LABEL, id="nodes come"),
        pytest.param(
            {}, fleet_of(sized(15360, **{names.DRIVER_LIMITS: "false"})), NO_NODE, id="a no"
        ),
        pytest.param({}, fleet_of(sized(15360, driver="580.1", **YES)), OLD, id="rolled back"),
    ],
)
def test_auto_holds_what_gets_proved_nodes_alone(spec: Any, fleet: Fleet, expected: str) -> None:
    """What may get a node that is not proved is told as if there were no driver's limits."""
    asked = shared("3Gi", **spec)
    result, without = (rewritten(asked, fleet=fleet, policy=each)[0] for each in (AUTO, OFF))
    caps = {env: text for env, text in environment(result).items() if "GPU_MEMORY" not in env}

    assert expected == limit_of(asked, fleet, AUTO)
    assert required(asked) == required(result)
    assert caps.keys() <= environment(without).keys()
    assert expected == "3072" or environment(without) == environment(result)


def test_each_container_has_its_own_limit() -> None:
    """Containers with a part are held to that, init containers and sidecars too, and no others."""
    asked = pod(
        container("one", **{names.VOLCANO_MEMORY: "4000"}),
        container("two"),
        init=[container("early", **{names.VOLCANO_MEMORY: "2000"})],
    )
    offered = {names.VOLCANO_MEMORY: "15360"}
    fleet = fleet_of(node(card(), driver=NEW, allocatable=offered))
    result, said = rewritten(asked, fleet=fleet, policy=ON)
    found = [environment(result, name).get(names.DRIVER_LIMIT) for name in ("one", "two", "early")]

    one_of_two, word = rewritten(EARLY, fleet=fleet_of(SILENT), policy=ON)

    assert ["4000", None, "2000"] == found
    assert names.DRIVER_LIMIT not in environment(one_of_two, "early")
    assert "the agent fences the rest" in word.summary
    assert "the driver is asked to hold early to 2000Mi, one to 4000Mi" in said.summary


def test_a_claim_counts_as_it_asks() -> None:
    """An amount that a claim asks for fits wherever the claim is allocated, which may be more."""
    claim = builders.claim("c", builders.request("5Gi"))
    asked = pod(
        builders.claiming(container(), gpu=""), resourceClaims=[builders.by_name("gpu", "c")]
    )
    result = rewritten_with_claims(asked, {"gpu": claim}, fleet=fleet_of(T4), policy=ON)

    assert "5120" == environment(result)[names.DRIVER_LIMIT]


def test_an_amount_that_is_not_known_yet_is_not_written() -> None:
    """What a claim gets by its driver's policy shows when it is allocated, which is too late."""
    resource = f"{names.DRA_CLASS_PREFIX}{names.DRA_CLASSES[1]}"
    asked = pod(container(**{resource: "1"}))

    assert UNREADABLE == limit_of(asked, fleet_of(T4))
