"""What is remembered of watched objects, and that nothing is lost by forgetting the rest."""

import json
from typing import Any

import pytest

from agent.cluster.filter import filter_node, filter_pod
from agent.fence import PodContext
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.plan import Plan, write_plan
from tests.support.agent.builders import CARDS
from tests.support.builders import container, gpushare, node, pod, sidecar
from tests.support.tree import Vector, vectors

LONG = "x" * 10_000
ENDED = {
    "state": {"waiting": {"message": LONG, "reason": "CrashLoopBackOff"}},
    "lastState": {
        "terminated": {
            "exitCode": 1,
            "message": f"{LONG} CUDA out of memory",
            "finishedAt": "2026-11-19T05:06:07Z",
        }
    },
}


def ground(**more: Any) -> PodContext:
    said: dict[str, Any] = {
        "labels": {names.MODE: "evict"},
        "annotations": {},
        "highest": Mode.EVICT,
        "cards": CARDS,
        "units": Units(),
    }
    return PodContext(**said | more)


def full_pod() -> dict[str, Any]:
    """Build a pod with all that an API server adds, most of it for others."""
    raw = pod(
        gpushare(),
        init=[sidecar("side"), gpushare("first")],
        annotations={
            names.INJECTED: "yes",
            names.PLAN: write_plan(Plan(Mode.EVICT, "gpushare", 1)),
            names.SITECUSTOMIZE: LONG,
            names.WARNINGS: LONG,
            names.MIRROR: "hash",
            "somebody.example/else": LONG,
        },
        nodeName="node-1",
        terminationGracePeriodSeconds=7,
        volumes=[{"name": LONG}],
        resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}],
    )
    raw["metadata"] |= {
        "creationTimestamp": "2026-11-18T01:02:03Z",
        "labels": {"app": "web"},
        "managedFields": [{"fieldsV1": LONG}],
        "deletionTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "u0"},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True},
        ],
    }
    raw["status"] = {
        "phase": "Running",
        "conditions": [{"message": LONG}],
        "containerStatuses": [
            {"name": "main", "containerID": "containerd://aa", "image": LONG, **ENDED},
            {"name": "second", "containerID": None},
        ],
        "initContainerStatuses": [{"name": "first", "containerID": "containerd://bb"}],
    }
    return raw


def test_nothing_is_lost() -> None:
    """A pod reads the same before and after what does not matter is forgotten."""
    raw = full_pod()
    uid, kept = filter_pod(raw)

    assert raw["metadata"]["uid"] == uid
    assert read_pod_on_node(raw, ground()) == read_pod_on_node(kept, ground())
    assert {"main": "2026-11-19"} == read_pod_on_node(kept, ground()).out_of_memory


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.name)
def test_nothing_is_lost_of_the_shared_vectors(vector: Vector) -> None:
    """Every declaration of the shared vectors survives."""
    kept = filter_pod(vector.pod)[1]
    stands = ground(annotations=vector.namespace, units=vector.card.units)

    assert read_pod_on_node(vector.pod, stands) == read_pod_on_node(kept, stands)


@pytest.mark.parametrize("word", ["=1+1", "<b>", "a\x1b[31m", "n" * 321, "\U0001f600", ""])
def test_what_no_owner_can_be_called_is_not_read(word: str) -> None:
    """
    The API server takes any text in a reference, and people see it on terminals and in sheets.
    """
    raw = full_pod()
    raw["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": word, "name": word, "uid": "u", "controller": True}
    ]
    made_by = read_pod_on_node(filter_pod(raw)[1], ground()).controller

    assert made_by is not None
    assert ("...", "...") == (made_by.kind, made_by.name)


def test_little_is_kept() -> None:
    """What others write into a pod takes no memory."""
    assert 3000 > len(json.dumps(filter_pod(full_pod())[1]))


FAT: dict[str, dict[str, Any]] = {
    "annotations of ours": {
        "metadata": {"annotations": {f"gpufence.io/x{n}": "<" * 50 for n in range(20_000)}}
    },
    "an annotation": {"metadata": {"annotations": {names.MEMORY: "9" * 2**20}}},
    "a plan of wide characters": {"metadata": {"annotations": {names.PLAN: "\U0001f600" * 2**18}}},
    "labels": {"metadata": {"labels": {f"a{n}": "x" * 63 for n in range(20_000)}}},
    "an owner": {
        "metadata": {
            "ownerReferences": [
                {"kind": "K" * 2**18, "name": "\U0001f600" * 2**18, "controller": True}
            ]
        }
    },
    "containers": {"spec": {"containers": [{"name": f"c{n}"} for n in range(40_000)]}},
    "init containers": {"spec": {"initContainers": [{"name": f"c{n}"} for n in range(40_000)]}},
    "claims": {"spec": {"resourceClaims": [{"name": f"c{n}"} for n in range(40_000)]}},
    "resources": {
        "spec": {
            "containers": [{"resources": {"limits": {f"a.b/c{n}": "1" for n in range(40_000)}}}]
        }
    },
    "instances": {
        "spec": {
            "containers": [
                {"resources": {"limits": {f"nvidia.com/mig-{n}": "1" for n in range(40_000)}}}
            ]
        }
    },
    "statuses": {"status": {"containerStatuses": [{"name": f"c{n}"} for n in range(40_000)]}},
}


@pytest.mark.parametrize("raw", FAT.values(), ids=FAT)
def test_little_is_kept_of_a_fat_pod(raw: dict[str, Any]) -> None:
    """Whatever a tenant makes long or many, some dozen kilobytes of it are kept."""
    assert 100_000 > len(json.dumps(filter_pod(raw)[1], ensure_ascii=False))


def test_what_has_a_meaning_is_kept_before_the_rest() -> None:
    """
    A pod's limit is read whatever else stands beside it, and what is too long is nothing else.
    """
    raw = pod(gpushare(), annotations={names.MEMORY: "1Gi", names.PLAN: LONG * 10})
    raw["metadata"]["annotations"] |= {f"{names.PREFIX}{n}": LONG for n in range(20)}
    kept = filter_pod(raw)[1]["metadata"]["annotations"]

    assert ("1Gi", "...") == (kept[names.MEMORY], kept[names.PLAN])


DECOYS = {f"{names.NVIDIA_MIG_PREFIX}{n}g.{n}gb": "0" for n in range(100)}
CROWDED = {
    "amounts of none": pod(container(**DECOYS, **{names.VOLCANO_MEMORY: "3000"})),
    "amounts of the unknown": pod(
        container(**dict.fromkeys(DECOYS, "1"), **{names.VOLCANO_MEMORY: "3000"})
    ),
    "keys without a meaning": pod(
        container(**{names.NVIDIA_GPU: "1"}),
        annotations={f"{names.MEMORY_OF_CONTAINER}main": "2Gi"}
        | {f"{names.PREFIX}x{n}": "" for n in range(2000)},
    ),
    "keys for containers that are not there": pod(
        container(**{names.NVIDIA_GPU: "1"}),
        annotations={f"{names.MEMORY_OF_CONTAINER}main": "2Gi"}
        | {f"{names.MEMORY_OF_CONTAINER}a{n}": "" for n in range(2000)},
    ),
}


@pytest.mark.parametrize("raw", CROWDED.values(), ids=CROWDED)
def test_no_crowd_of_words_hides_an_amount(raw: dict[str, Any]) -> None:
    """Words that mean nothing, however many, take no room from those that a limit is made of."""
    whole, kept = (read_pod_on_node(item, ground()) for item in (raw, filter_pod(raw)[1]))

    assert kept.enforced
    assert CARDS[0].uuid in kept.limits
    assert whole.limit_on(CARDS[0].uuid) == kept.limit_on(CARDS[0].uuid)


@pytest.mark.parametrize("key", [names.GPUSHARE_CARD_INDEX, names.VOLCANO_CARD_INDEX])
def test_the_card_that_a_scheduler_has_noted_is_kept(key: str) -> None:
    """A pod that holds nothing yet is owed its memory on the card it was given."""
    kept = filter_pod(pod(gpushare(), annotations={key: "1"}))[1]

    assert frozenset({CARDS[1].uuid}) == read_pod_on_node(kept, ground()).assigned


def test_an_empty_pod() -> None:
    """A pod without anything is kept as one, to be found unreadable later."""
    assert "" == filter_pod({"metadata": "no object"})[0]


def test_node() -> None:
    """Of a node its GPU resources, its sharing and our own annotation are kept."""
    offered = {"cpu": "8", names.GPUSHARE_MEMORY: "30", "nvidia.com/mig-1g.5gb": "2"}
    item = node(
        labels={names.GFD_REPLICAS: "4", "other": "x"},
        annotations={names.CARDS: "{}", "other": "x"},
        allocatable=offered,
    )
    name, kept = filter_node(item)
    del offered["cpu"]

    assert "node-1" == name
    assert {
        "metadata": {
            "name": "node-1",
            "uid": "uid-of-node-1",
            "labels": {names.GFD_REPLICAS: "4"},
            "annotations": {names.CARDS: "{}"},
        },
        "status": {"allocatable": offered, "capacity": offered},
    } == kept


def test_of_conditions_only_ours_is_kept() -> None:
    """What the agent has said of a pod is remembered, in two words."""
    raw = pod(gpushare())
    ours = {"type": names.GPU_IDLE, "status": "True", "message": LONG}
    raw["status"] = {"conditions": [{"type": "Ready", "status": "True"}, ours]}
    _, kept = filter_pod(raw)

    assert [{"type": names.GPU_IDLE, "status": "True"}] == kept["status"]["conditions"]
