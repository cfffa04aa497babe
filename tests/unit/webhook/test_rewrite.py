"""The decision as a whole: modes, refusals, forgeries, namespaces, scheduling."""

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import bookkeeping
from gpufence.errors import InvalidError
from gpufence.mode import Mode
from gpufence.plan import write_plan
from gpufence.pods import read_pod
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import (
    NO_CARD,
    annotation,
    decide,
    environment,
    gpu_node,
    rewritten,
    variables,
)
from tests.support.tree import Vector, vectors
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite import Refusal, Rewrite, Unchanged
from webhook.rewrite.decide import UNASKED

GPU = {names.NVIDIA_GPU: "1"}
AT_CREATE = [each for each in vectors() if not bookkeeping(read_pod(each.pod).annotations)]
"""What only schedulers write is dropped from a pod that is created with it."""


@pytest.mark.parametrize("vector", AT_CREATE, ids=lambda vector: vector.name)
def test_the_plan_holds_what_the_vectors_say(vector: Vector) -> None:
    """The limits of the shared vectors are those of the plan, pod and containers alike."""
    policy = WebhookPolicy(default=vector.card)
    said = decide(vector.pod, Mode.CAP, vector.namespace, policy=policy)
    if "parts" in vector.expected:
        assert isinstance(said, Rewrite)
        assert vector.expected["limit"] == said.plan.limit_bytes
        assert {name: part["limit"] for name, part in vector.expected["parts"].items()} == {
            name: item.limit_bytes for name, item in said.plan.containers.items()
        }
    else:
        assert not isinstance(said, Refusal)


@pytest.mark.parametrize(
    "asked",
    [
        pod(container(**GPU), os={"name": "windows"}),
        pod(container(**GPU), nodeSelector={names.OS: "windows"}),
        pod(container(**GPU), annotations={names.MIRROR: "x"}),
        pod(container(cpu="1")),
        pod(container(**{names.GPUSHARE_MEMORY: "0"})),
    ],
)
def test_other_pods_are_left_alone(asked: dict[str, Any]) -> None:
    """Windows pods, mirrors of static pods and pods without GPU stay as they are."""
    assert isinstance(decide(asked, namespace={names.MEMORY: "2Gi"}), Unchanged)


def test_a_pod_without_a_gpu_is_warned_where_it_may_use_none() -> None:
    """Where its namespace evicts pods that ask for no GPU, its creator is told so."""
    asked = pod(container(), annotations={names.HEADROOM: "auto"})
    _, said = rewritten(asked, namespace={names.UNDECLARED_USE: "evict"})
    _, other = rewritten(asked, namespace={names.UNDECLARED_USE: "report"})

    assert (UNASKED,) == said.warnings
    assert UNASKED in said.summary
    assert UNASKED not in other.warnings


def test_a_pod_with_a_word_for_us_and_no_gpu_is_told_why() -> None:
    """A pod that speaks to gpufence but asks for no GPU memory is marked, and says why."""
    result, said = rewritten(pod(container(), annotations={names.HEADROOM: "auto"}))

    assert "nothing" == annotation(result, names.INJECTED)
    assert "not fenced: no container asks for GPU memory" in said.summary


def test_no_pod_at_all_is_an_error() -> None:
    """What is no pod raises instead of being guessed at."""
    with pytest.raises(InvalidError):
        decide({"spec": {"containers": "none"}})


@pytest.mark.parametrize(
    ("annotations", "limits", "word"),
    [
        ({names.MEMORY: "6 GiB"}, GPU, "gpufence.io/memory"),
        ({names.HEADROOM: "lots"}, {names.GPUSHARE_MEMORY: "3"}, "write one of factor, auto"),
        ({}, {names.GPUSHARE_MEMORY: "10G"}, "more than any card holds"),
        ({names.KAI_FRACTION: "2"}, {}, "a share between 0 and 1"),
        ({names.MEMORY: "512Mi"}, GPU, "ask for at least 640Mi"),
    ],
)
def test_evict_refuses_what_can_never_run(
    annotations: dict[str, str], limits: dict[str, str], word: str
) -> None:
    """In evict such a pod is refused with the remedy, in cap the same words are a warning."""
    asked = pod(container(**limits), annotations=annotations)
    refused, warned = decide(asked, Mode.EVICT), decide(asked, Mode.CAP)

    assert isinstance(refused, Refusal)
    assert word in refused.message
    assert isinstance(warned, Rewrite)
    assert any(word in text for text in warned.warnings)


@pytest.mark.parametrize(
    "asked",
    [
        pod(container(**GPU), annotations={names.MEMORY: "512Mi", names.INJECT: "disabled"}),
        pod(container(**GPU), annotations={"gpufence.io/memroy": "6Gi"}),
    ],
)
def test_evict_refuses_nothing_else(asked: dict[str, Any]) -> None:
    """What only does nothing is let in, even in evict."""
    assert isinstance(decide(asked, Mode.EVICT), Rewrite)


def test_an_unknown_unit_never_refuses() -> None:
    """A node whose figures leave the unit open is nobody's reason to refuse a pod."""
    doubtful = gpu_node(node(card(), allocatable={names.GPUSHARE_MEMORY: "700"}))
    said = decide(pod(gpushare()), Mode.EVICT, fleet=Fleet([doubtful]))

    assert isinstance(said, Rewrite)
    assert "no certain unit" in said.warnings[0]


def test_a_doubtful_node_among_others_is_named() -> None:
    """Where some nodes can be reckoned with, those count, and the doubt about others is said."""
    doubtful = gpu_node(node(card(), name="odd", allocatable={names.GPUSHARE_MEMORY: "700"}))
    result, said = rewritten(pod(gpushare()), fleet=Fleet([doubtful, gpu_node(node(card()))]))

    assert "0.140000" == environment(result)[names.XLA_FRACTION]
    assert said.warnings[0].startswith("on some nodes this holds: ")


def test_a_limit_that_fits_the_best_card_is_let_in() -> None:
    """A limit is too small only if it is so on every card the pod might meet."""
    old = card(memory_bytes=8 * 2**30, compute_capability=(7, 5))
    new = card(memory_bytes=80 * 2**30, compute_capability=(9, 0))
    fleet = Fleet(
        [gpu_node(node(item, name=item.model + str(item.memory_bytes))) for item in (old, new)]
    )
    asked = pod(gpushare(), annotations={names.MEMORY: "700Mi"})

    assert isinstance(decide(asked, Mode.EVICT, fleet=fleet), Rewrite)


def test_some_cards_unknown_is_said() -> None:
    """Where some nodes do not tell their cards, values may be too large there, and that is said."""
    dumb = gpu_node(node(name="dumb", allocatable={names.GPUSHARE_MEMORY: "15"}))
    _, said = rewritten(
        pod(gpushare()), fleet=Fleet([dumb, gpu_node(node(card()))]), policy=NO_CARD
    )

    assert any("some nodes do not tell their cards" in text for text in said.warnings)


def test_a_named_node_with_unknown_cards_makes_nothing_exact() -> None:
    """A pod with nodeName on a node that does not state its cards keeps the careful values."""
    dumb = gpu_node(node(name="a", allocatable={names.GPUSHARE_MEMORY: "15"}))
    asked = pod(gpushare(), nodeName="a")
    result, _ = rewritten(asked, fleet=Fleet([dumb]), policy=NO_CARD)

    assert annotation(result, names.NODE) is None


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ({"image": "gpu-burn:1", "command": ["./gpu_burn", "60"]}, False),
        ({"image": "nvcr.io/nvidia/tensorrt:25.08-py3", "args": ["trtexec", "--onnx=m"]}, False),
        ({"image": "ghcr.io/games/steam-headless:1"}, False),
        ({"image": "tensorflow/tensorflow:2.21.0-gpu"}, False),
        ({"image": "app:1", "command": ["python", "train.py"]}, False),
        ({"image": "pytorch/pytorch:2.10.0"}, True),
        ({"image": "app:1", "command": ["sh", "-c", "torchrun train.py"]}, True),
        ({"image": "app:1", "env": variables(XLA_PYTHON_CLIENT_MEM_FRACTION="0.1")}, True),
        ({"image": "jax:1"}, True),
    ],
)
def test_frameworks_are_told_where_one_is_known(item: dict[str, Any], *, kept: bool) -> None:
    """A plan and its summary speak of a cap that is kept only where something is known to do so."""
    _, said = rewritten(pod(gpushare() | item))
    plan = said.plan.containers["main"]

    assert kept == plan.kept
    assert kept == ("frameworks are configured with main 2150Mi" in said.summary)
    assert kept != ("variables say main 2150Mi" in said.summary)
    assert kept != ('"kept":false' in write_plan(said.plan))


def test_the_hook_makes_tensorflow_keep_to_its_cap() -> None:
    """TensorFlow keeps to its fraction with the start-up hook, and then counts as told."""
    item = gpushare() | {"image": "tensorflow/tensorflow:2.21.0-gpu"}
    _, said = rewritten(pod(item, annotations={names.PYTHON_HOOK: "enabled"}))

    assert said.plan.containers["main"].kept


@pytest.mark.parametrize("mine", ["MINE", names.CUPY_LIMIT])
def test_growth_in_observe_is_all_that_containers_see(mine: str) -> None:
    """In observe with growth only the grow-on-demand variables are set."""
    asked = pod(
        gpushare() | {"env": variables(**{mine: "x"})}, annotations={names.GROWTH: "enabled"}
    )
    result, said = rewritten(asked, Mode.OBSERVE)

    assert {mine: "x", names.XLA_PREALLOCATE: "false", names.TF_GROWTH: "true"} == (
        environment(result)
    )
    assert "main 2150Mi" in said.summary


@pytest.mark.parametrize(
    "limits",
    [
        {names.VOLCANO_VGPU_MEMORY: "3000"},
        {names.HAMI_MEMORY: "3000"},
        {names.NVIDIA_GPU: "1"},
        {names.VOLCANO_NUMBER: "1"},
    ],
)
def test_nothing_is_injected_where_nothing_is_to_be_fenced(limits: dict[str, str]) -> None:
    """Systems with a cap of their own, and whole cards, get no variables."""
    result, _ = rewritten(pod(container(**limits)))

    assert {} == environment(result)
    assert "nothing" == annotation(result, names.INJECTED)


def test_annotations_that_leave_no_room_are_not_overfilled() -> None:
    """A pod whose annotations are nearly full stays as it is: too many would be refused."""
    full = decide(pod(gpushare(), annotations={"big": "x" * 254_000}))
    half = decide(pod(gpushare(), annotations={"big": "x" * 150_000}))

    assert isinstance(full, Unchanged)
    assert "leave no room" in full.warnings[0]
    assert isinstance(half, Rewrite)


def test_of_many_forged_keys_a_few_are_named() -> None:
    """Keys that schedulers write are dropped, however many there are, and the rest is counted."""
    forged = {f"{names.KAI_OF_CONTAINER}c{n}{names.KAI_GIVEN}": "0" for n in range(20)}
    result, said = rewritten(pod(gpushare(), annotations=forged))

    assert forged.keys().isdisjoint(result["metadata"]["annotations"])
    assert 17 == sum("dropped" in warning for warning in said.warnings)
    assert any(warning.startswith("4 more keys") for warning in said.warnings)


def test_a_pod_of_more_levels_than_json_has_is_rewritten() -> None:
    """What lies deeper than anything that is read does not matter."""
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    asked = pod(gpushare())
    asked["spec"]["unheardOf"] = deep

    assert isinstance(decide(asked), Rewrite)
