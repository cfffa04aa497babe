"""What is read of pods and nodes."""

import pytest

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.cluster_view import by_node, named, see_node, silent_notes
from kubectl_gpufence.pods import (
    annotations_of,
    is_ready,
    node_of,
    see_pod,
    status_port,
)
from kubectl_gpufence.verbs.doctor.installation import read_labelled
from tests.support.builders import container, gpushare, pod
from tests.support.plugin import agent, raw_node, raw_pod, seen_node, seen_pod, snapshot


def test_the_webhooks_limit_counts_before_our_own() -> None:
    """The plan was made with the operator's settings, which a plugin does not know."""
    raw = raw_pod()
    raw["metadata"]["annotations"][names.PLAN] = raw["metadata"]["annotations"][names.PLAN].replace(
        '"limit":"3072Mi","containers"', '"limit":"3Mi","containers"'
    )

    assert (3 * MIB, 3 * GIB) == (
        see_pod(raw, None).limit_bytes,
        see_pod(raw, None).declaration.limit_bytes,
    )


def test_init_containers_do_not_add_to_what_was_told() -> None:
    """An init container has gone when the others take their memory."""
    both = raw_pod(gpushare("main", 3), initContainers=[gpushare("first", 3)])
    alone = raw_pod(container("main"), initContainers=[gpushare("first", 3)])

    assert 2150 * MIB == see_pod(both, seen_node().gpu).told_bytes
    assert 2150 * MIB == see_pod(alone, seen_node().gpu).told_bytes


def test_a_pod_without_gpu_memory_is_none_of_ours() -> None:
    """Neither its resources nor its annotations name it."""
    assert not see_pod(pod(), None).uses_gpu
    assert see_pod(pod(annotations={names.MEMORY: "1Gi"}), None).uses_gpu
    assert see_pod(pod(annotations={f"{names.MEMORY_OF_CONTAINER}main": "1Gi"}), None).uses_gpu


def test_a_pod_that_declares_nothing_says_why() -> None:
    """Undeclared and unreadable are told apart in words."""
    unreadable = pod(gpushare("main", "many"))

    assert "no container asks for GPU memory" in see_pod(pod(), None).declaration.why_not
    assert '"many" is not' in see_pod(unreadable, None).declaration.why_not


def test_a_share_of_an_unknown_card_has_no_limit() -> None:
    """Half of a card that nobody has told of is not zero."""
    raw = pod(annotations={names.KAI_FRACTION: "0.5"})

    said = see_pod(raw, None).declaration
    assert (None, "the size of its card is not known") == (said.limit_bytes, said.why_not)


def test_the_controller_is_the_owner() -> None:
    """Other owners do not make pods anew."""
    raw = pod()
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Queue", "name": "q"},
        {"kind": "Job", "name": "j", "controller": True},
    ]

    assert "Job/j" == see_pod(raw, None).owner
    assert "" == see_pod(pod(), None).owner


def test_what_is_no_pod_is_refused() -> None:
    """A list of something else is an error, not a pod without limits."""
    with pytest.raises(InvalidError):
        see_pod({"metadata": []}, None)


def test_observed_pods_have_only_a_plan() -> None:
    """In mode observe the figures are what would be done."""
    assert seen_pod(mode=Mode.OBSERVE).only_planned
    assert not seen_pod().only_planned
    assert not seen_pod(mode=None).only_planned


def test_a_node_tells_its_cards_or_why_not() -> None:
    """A missing annotation and a broken one are two things."""
    silent, broken = raw_node(), raw_node()
    del silent["metadata"]["annotations"][names.CARDS]
    broken["metadata"]["annotations"][names.CARDS] = "{"

    assert seen_node().cards is not None
    assert (None, "") == (see_node(silent).cards, see_node(silent).cards_trouble)
    assert see_node(broken).cards_trouble.startswith(names.CARDS)


def test_while_an_agent_is_replaced_the_one_that_answers_counts() -> None:
    """Two pods on a node are one agent; one without a node is none yet."""
    old, new = agent(None, "gone", pod="old"), agent(snapshot(), pod="new")
    pending = agent(None, "pending", node="")

    assert {"gpu-1": new} == by_node([pending, old, new])
    assert {"gpu-1": new} == by_node([new, old])


def test_each_reason_for_silence_is_told_once() -> None:
    """A hundred agents that may not be asked are one note."""
    denied = [agent(None, "you may not", node=f"n{place}") for place in range(5)]
    lost = agent(None, "lost", node="", pod="pod-x")

    assert (
        "5 agents (n0, n1, n2 and 2 more): you may not",
        "1 agent (pod-x): lost",
    ) == silent_notes([*denied, lost, agent(snapshot())])
    assert "a, b" == named(["b", "a"])


def test_a_namespace_is_known_by_its_label() -> None:
    """A namespace without the label has no mode; a wrong value is kept to be told."""
    raw = {"metadata": {"name": "a", "labels": {names.MODE: "Cap"}}}

    assert ("a", "Cap") == (read_labelled(raw).name, read_labelled(raw).mode)
    assert None is read_labelled({"metadata": {"name": "b"}}).mode


def test_an_agents_pod_says_where_and_how_it_is_asked() -> None:
    """Its node, whether it is ready, and its status port, which has a usual number."""
    port = {"name": "status", "containerPort": 9000}
    ready = {"type": "Ready", "status": "True"}
    raw = {
        "spec": {"nodeName": "gpu-1", "containers": [{}, {"ports": [{"name": "other"}, port]}]},
        "status": {"conditions": [ready]},
    }

    assert ("gpu-1", True, 9000) == (node_of(raw), is_ready(raw), status_port(raw))
    assert ("", False, 8080) == (node_of({}), is_ready({}), status_port({}))
    assert {"a": "b"} == annotations_of({"metadata": {"annotations": {"a": "b"}}})
