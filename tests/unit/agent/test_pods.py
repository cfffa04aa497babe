"""From the API server's pods to the judge's."""

from typing import Any

import pytest

from agent.model.pod import Cap, Controller, PodLimit, PodOnNode, pods_on_node
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.cards import Card
from gpufence.errors import InvalidError
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, read, status_of
from tests.support.agent.world import Act, World
from tests.support.builders import card, gpushare
from tests.support.builders import pod as raw_pod
from tests.support.tree import Vector, vectors

UUID = CARDS[0].uuid


def changed(part: str, **values: Any) -> dict[str, Any]:
    """Build a pod of 3 GiB with these values in its metadata, spec or status."""
    raw = raw_pod(gpushare())
    raw[part] = raw.get(part, {}) | values
    return raw


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.name)
def test_agent_enforces_the_limits_of_the_shared_vectors(vector: Vector) -> None:
    """What the agent enforces on a card of that size is what the shared vectors say."""
    expected = vector.expected
    size = vector.card.memory_bytes
    known = () if size is None else (card(0, memory_bytes=size),)
    found = read(vector.pod, annotations=vector.namespace, cards=known, units=vector.card.units)
    limit = found.limits.get("GPU-0")

    wanted = expected.get("limit", expected.get("held")) if known else None
    assert wanted == (limit.limit_bytes if limit else None)
    if limit is not None and "parts" in expected:
        assert expected["enforced"] == found.enforced
        assert {name: part["limit"] for name, part in expected["parts"].items()} == limit.parts
        assert expected.get("promised", wanted) == (limit.share_bytes or limit.limit_bytes)


def test_all_that_is_read() -> None:
    """A pod is read with its containers, its controller, its labels and its limit on each card."""
    raw = raw_pod(gpushare(), annotations={names.INJECTED: "nothing"})
    raw["metadata"] |= {
        "labels": {"app": "web"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "u0"},
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": "u1",
                "controller": True,
            },
        ],
    }
    raw["spec"]["terminationGracePeriodSeconds"] = 7
    raw["status"] = {
        "containerStatuses": [{"name": "main", "containerID": "containerd://aa"}],
        "initContainerStatuses": [{"name": "first", "containerID": "cri-o://bb"}, {"name": "x"}],
        "ephemeralContainerStatuses": [{"name": "debug", "containerID": "docker://cc"}],
    }

    expected = PodOnNode(
        uid="11111111-2222-3333-4444-555555555555",
        namespace="team-a",
        name="train-1",
        mode=Mode.EVICT,
        limits={item.uuid: PodLimit(3 * GIB, {"main": 3 * GIB}) for item in CARDS},
        containers={"aa": "main", "bb": "first", "cc": "debug"},
        controller=Controller("batch/v1", "Job", "train", "u1"),
        grace_seconds=7,
        labels={"app": "web"},
        measure="gpushare, units of 1Gi",
    )
    found = read(raw)
    assert expected == found
    assert found.of_job
    del raw["spec"]["terminationGracePeriodSeconds"]
    assert 30 == read(raw).grace_seconds


@pytest.mark.parametrize(
    ("index", "cards", "expected"),
    [
        ("1", CARDS, {CARDS[1].uuid}),
        (None, CARDS, set()),
        ("99", CARDS, set()),
        ("some", CARDS, set()),
        (None, CARDS[:1], {UUID}),
    ],
    ids=["noted", "unknown", "no such card", "no number", "the only card"],
)
def test_card_a_pod_was_given(
    index: str | None, cards: tuple[Card, ...], expected: set[str]
) -> None:
    """A pod was given the card its scheduler noted on it, or the only one of the node."""
    noted = {} if index is None else {names.GPUSHARE_CARD_INDEX: index}

    assert expected == read(changed("metadata", annotations=noted), cards=cards).assigned


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_promised_nothing(phase: str) -> None:
    """Only a pod that has not ended is promised its limit."""
    promise = read(changed("status", phase=phase)).promise_on(UUID)

    assert (3 * GIB if phase == "Running" else None) == promise


@pytest.mark.parametrize(
    ("labels", "highest", "expected"),
    [
        ({}, Mode.EVICT, None),
        ({names.MODE: "evict"}, Mode.CAP, Mode.CAP),
        ({names.MODE: "observe"}, Mode.EVICT, Mode.OBSERVE),
        ({names.MODE: "Evict!"}, Mode.EVICT, None),
    ],
)
def test_mode(labels: dict[str, str], highest: Mode, expected: Mode | None) -> None:
    """The lower of the namespace's word and the kill switch counts; an unreadable word is none."""
    assert expected is read(raw_pod(gpushare()), labels=labels, highest=highest).mode


@pytest.mark.parametrize(
    ("labels", "volume", "expected"),
    [
        ({}, {"hostPath": {"path": "/run/nvidia/mps"}}, True),
        ({names.MODE: "observe"}, {"hostPath": {"path": "/run/nvidia/mps"}}, False),
        ({}, {"emptyDir": {}}, False),
    ],
)
def test_pods_of_the_operator(
    labels: dict[str, str],
    volume: dict[str, Any],
    expected: bool,  # noqa: FBT001 - one column of a table
) -> None:
    """A pod that mounts a path of its node is the operator's where its namespace has no mode."""
    raw = raw_pod(gpushare(), uid="u")
    raw["spec"]["volumes"] = [{"name": "a", **volume}]

    assert expected is read(raw, labels=labels).of_operator


def test_uninjected_and_terminating() -> None:
    """A pod without our mark was not seen by the webhook; one with a deletion time is going."""
    found = read(changed("metadata", deletionTimestamp="2026-01-02T03:04:05Z"))

    assert (False, True) == (found.injected, found.terminating)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            changed("metadata", annotations={names.MIRROR: "0" * 32}),
            "it is a static pod, which its kubelet would start again",
        ),
        (changed("status", phase="Failed"), "it has ended, and an eviction would free nothing"),
        (changed("status", phase="Running"), ""),
        (changed("spec", priorityClassName="system-node-critical", priority=2_000_001_000), ""),
        (
            changed("metadata", namespace="kube-system"),
            "namespace kube-system is exempt by the operator's word",
        ),
    ],
)
def test_exempt(raw: dict[str, Any], expected: str) -> None:
    """
    Static pods, pods that have ended and the operator's namespaces are exempt; no priority is.
    """
    assert expected == read(raw, exempt_namespaces=frozenset({"kube-system"})).exempt


def test_limit_follows_the_size_of_the_card() -> None:
    """A share of a card is as large as that card's share."""
    mixed = (card(0, memory_bytes=16 * GIB), card(1, memory_bytes=40 * GIB))
    found = read(raw_pod(annotations={names.KAI_FRACTION: "0.5"}), cards=mixed)

    assert [8 * GIB, 20 * GIB] == [item.limit_bytes for item in found.limits.values()]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (raw_pod(), "no container asks for GPU memory in a way gpufence knows"),
        (
            raw_pod(gpushare(units="-3")),
            (
                'spec.containers[0].resources.limits[aliyun.com/gpu-mem]: "-3" is negative; '
                "write an amount above zero"
            ),
        ),
    ],
)
def test_pod_without_a_limit_says_why(raw: dict[str, Any], expected: str) -> None:
    """A pod that declares nothing, or what nobody can read, has no limit but a reason."""
    found = read(raw)

    assert ({}, expected) == (found.limits, found.undeclared)


def test_no_pod() -> None:
    """What is no pod is refused, naming the field."""
    with pytest.raises(InvalidError, match="spec"):
        read({"metadata": {}, "spec": []})


def plan(*settings: Setting, cap: int | None = GIB, kept: bool = True) -> str:
    said = ContainerPlan(3 * GIB, 1, Headroom.FACTOR, cap, settings, kept=kept)
    return write_plan(Plan(Mode.CAP, "gpushare", 3 * GIB, {"main": said}))


def setting(done: Done = Done.SET, **more: Any) -> Setting:
    said: dict[str, Any] = {"allowance_bytes": 2 * GIB, "reserve_bytes": 512 * MIB}
    return Setting("E", "s0", "bytes", done, **said | more)


@pytest.mark.parametrize(
    ("injected", "text", "expected"),
    [
        ("yes", plan(setting()), {"main": Cap(2 * GIB, 512 * MIB)}),
        ("yes", plan(setting(), setting(reserve_bytes=GIB)), {"main": Cap(2 * GIB, GIB)}),
        ("yes", plan(setting(), cap=5 * GIB), {"main": Cap(5 * GIB, 512 * MIB)}),
        ("yes", plan(setting(), cap=None), {}),
        ("yes", plan(setting(), kept=False), {"main": Cap(2 * GIB, 512 * MIB, kept=False)}),
        ("yes", plan(setting(Done.LEFT)), {}),
        ("yes", plan(setting(Done.PLANNED)), {}),
        ("yes", plan(setting(reserve_bytes=None)), {"main": Cap(2 * GIB, 0)}),
        ("yes", plan(setting(allowance_bytes=None)), {}),
        ("nothing", plan(setting()), {}),
        ("yes", '{"v": 99}', {}),
        ("yes", "{", {}),
    ],
)
def test_caps(injected: str, text: str, expected: dict[str, Cap]) -> None:
    """What frameworks were told is read from the plan of an injected pod, and never guessed."""
    raw = raw_pod(gpushare(), annotations={names.INJECTED: injected, names.PLAN: text})

    assert expected == read(raw).caps


def test_forged_words_decide_nothing() -> None:
    """
    A plan that grants more than the pod declares changes no limit, and no pod takes another's
    processes over by naming that one's UID as its manifest's hash.
    """
    said = ContainerPlan(9 * GIB, 1, Headroom.FACTOR, 9 * GIB, (setting(),))
    forged = write_plan(Plan(Mode.CAP, "gpushare", 9 * GIB, {"main": said}))
    raw = raw_pod(gpushare(), annotations={names.INJECTED: "yes", names.PLAN: forged})
    victim = read(raw_pod(gpushare()))
    thief = read(changed("metadata", uid="uid-t", annotations={names.MIRROR: victim.uid}))

    assert 3 * GIB == read(raw).limits[UUID].limit_bytes
    for order in ([victim, thief], [thief, victim]):
        assert victim is pods_on_node(order).by_cgroup[victim.uid]


def test_priority_system_node_critical() -> None:
    """A pod of the highest priority goes at second 30 like any other."""
    raw = changed("spec", priorityClassName="system-node-critical", priority=2_000_001_000)
    raw["metadata"]["annotations"] = {names.INJECTED: "yes"}
    raw["status"] = status_of("train-1")
    world = World()
    world.add(read(raw), GIB)
    world.settle_in()
    world.hold("train-1", 4 * GIB)

    assert [Act(30, "train-1")] == world.run(40)


def planned(**runs: str) -> str:
    """Write the plan of a pod whose containers are known to run these programs."""
    containers = {
        name: ContainerPlan(GIB, 1, Headroom.FACTOR, None, runs=engine)
        for name, engine in runs.items()
    }
    return write_plan(Plan(Mode.CAP, "gpushare", GIB, containers))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, set()),
        ({names.IDLE_EVIDENCE: "gpu"}, {"main"}),
        ({names.IDLE_EVIDENCE: ""}, set()),
        ({names.IDLE_EVIDENCE: "none"}, set()),
        ({names.PLAN: planned(main="vllm")}, {"main"}),
        ({names.PLAN: planned(main="sglang", aside="pytorch")}, {"main"}),
        ({names.PLAN: planned(main="ollama")}, set()),
        ({names.PLAN: "{"}, set()),
        ({names.PLAN: planned(main="vllm"), names.IDLE_EVIDENCE: "all"}, set()),
    ],
)
def test_whose_cpu_says_nothing(annotations: dict[str, str], expected: set[str]) -> None:
    """
    The CPU of engines that spin is no sign of work, nor is any where the pod says so; the pod's
    word counts more.
    """
    assert expected == read(changed("metadata", annotations=annotations)).cpu_ignored


def test_what_a_pod_says_of_itself() -> None:
    """Of the conditions our own is read, and no other."""
    ready = {"type": "Ready", "status": "True"}
    own = {"type": names.GPU_IDLE, "status": "Unknown"}

    assert "Unknown" == read(changed("status", conditions=[ready, own])).idle_said
    assert "" == read(changed("status", conditions=[ready])).idle_said


@pytest.mark.parametrize(
    ("labels", "phase", "expected"),
    [
        ({names.MODE: "observe"}, "Running", True),
        ({names.IDLE: "warn"}, "Running", True),
        ({}, "Running", False),
        ({names.MODE: "observe"}, "Pending", False),
        ({names.MODE: "observe"}, "Succeeded", False),
    ],
)
def test_a_claim_is_one_of_a_pod_that_runs(
    labels: dict[str, str], phase: str, *, expected: bool
) -> None:
    """A pod that was given a GPU claims it while it runs, where its namespace wants to know."""
    assert expected is read(changed("status", phase=phase), labels=labels).claims


def test_an_annotation_claims_too() -> None:
    """
    What KAI's pods ask for in an annotation is a claim, and a pod that asks for nothing has none.
    """
    plain = raw_pod({"name": "main"}) | {"status": {"phase": "Running"}}
    asking = raw_pod({"name": "main"}, annotations={names.KAI_FRACTION: "0.5"})

    assert not read(plain).claims
    assert read(asking | {"status": {"phase": "Running"}}).claims
