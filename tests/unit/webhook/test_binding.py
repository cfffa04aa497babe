"""The values at binding."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from gpufence.plan import read_plan
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import NO_CARD, POLICY, gpu_node, rewritten, variables
from webhook.fleet import Fleet
from webhook.rewrite.binding import exact_values

T4 = gpu_node(node(card(), name="t4"))
H100 = gpu_node(
    node(
        card(memory_bytes=80 * 2**30, model="H100", compute_capability=(9, 0)),
        name="h100",
    )
)
BOTH = Fleet([T4, H100])


def created(asked: dict[str, Any], mode: Mode = Mode.CAP, **words: str) -> dict[str, Any]:
    return rewritten(asked, mode, words, BOTH)[0]


def value(exact: dict[str, str], created_pod: dict[str, Any], env: str) -> str:
    plan = read_plan(created_pod["metadata"]["annotations"][names.PLAN])
    settings = plan.containers["main"].settings
    slot = next(item.slot for item in settings if item.env == env)
    return exact[names.ENV_PREFIX + slot]


@pytest.mark.parametrize(("where", "expected"), [(T4, "0.466666"), (H100, "0.087500")])
def test_values_are_exact_for_the_node(where: Any, expected: str) -> None:
    """At binding every value is that of the node's own card."""
    bound = created(pod(gpushare(units="10")))
    exact = exact_values(bound, where, POLICY)

    assert expected == value(exact, bound, names.XLA_FRACTION)
    assert where.name == exact[names.NODE]
    assert where.cards[0].model in exact[names.CARD]


def test_a_wish_counts_again() -> None:
    """A user's fraction above the careful default, but within the node's share, comes back."""
    bound = created(
        pod(gpushare(units="10") | {"env": variables(XLA_PYTHON_CLIENT_MEM_FRACTION="0.3")})
    )
    careful = value(bound["metadata"]["annotations"], bound, names.XLA_FRACTION)
    exact = exact_values(bound, T4, POLICY)

    assert ("0.087500", "0.3") == (careful, value(exact, bound, names.XLA_FRACTION))
    assert "" == exact[names.WARNINGS]


def test_the_scheduler_may_name_the_card() -> None:
    """
    Where a node has different cards, the assigned one counts; else the careful minimum of them.
    """
    cards = (card(), card(1, memory_bytes=80 * 2**30))
    mixed = gpu_node(node(*cards, allocatable={names.GPUSHARE_MEMORY: "30"}))
    bound = rewritten(pod(gpushare(units="10")), fleet=Fleet([mixed]))[0]
    careful = exact_values(bound, mixed, POLICY)
    bound["metadata"]["annotations"][names.GPUSHARE_CARD_INDEX] = "0"
    exact = exact_values(bound, mixed, POLICY)

    assert "0.087500" == value(careful, bound, names.XLA_FRACTION)
    assert "0.466666" == value(exact, bound, names.XLA_FRACTION)


def test_the_namespaces_ceiling_of_that_time_counts() -> None:
    """The ceiling that held at creation is read from the plan."""
    asked = pod(container(**{names.NVIDIA_GPU: "1"}), annotations={names.MEMORY: "12Gi"})
    bound = rewritten(asked, namespace={names.MAX_MEMORY: "3Gi"})[0]
    exact = exact_values(bound, T4, POLICY)

    assert "0.140000" == value(exact, bound, names.XLA_FRACTION)


def test_a_limit_too_small_for_that_card_is_warned_about() -> None:
    """Where the card leaves a framework no room, the value is the least and the pod says so."""
    bound = created(pod(gpushare(), annotations={names.MEMORY: "700Mi"}))
    exact = exact_values(bound, H100, POLICY)

    assert str(128 * 2**20) == value(exact, bound, names.CUPY_LIMIT)
    assert "ask for at least 896Mi" in exact[names.WARNINGS]


def test_a_server_bound_where_it_would_overstep_is_held() -> None:
    """
    A server let through on the careful share is held to the node's even if its flag is larger.
    """
    flag = ["--gpu-memory-utilization=0.15"]
    asked = pod(gpushare() | {"image": "vllm/vllm-openai", "args": flag})
    bound = rewritten(asked)[0]
    exact = exact_values(bound, H100, POLICY)

    assert "per_process_memory_fraction:0.037500" == value(exact, bound, names.PYTORCH_CONF)


def test_what_gpufence_has_not_seen_is_left() -> None:
    """A pod without gpufence.io/injected or with a plan that cannot be read gets nothing."""
    bound = created(pod(gpushare()))
    unseen, newer = (pod(gpushare()), pod(gpushare()))
    unseen["metadata"]["annotations"] = {names.PLAN: bound["metadata"]["annotations"][names.PLAN]}
    newer["metadata"]["annotations"] = {names.INJECTED: "yes", names.PLAN: '{"v":2}'}

    assert [{}, {}] == [exact_values(item, T4, POLICY) for item in (unseen, newer)]


def test_observe_is_left() -> None:
    """In observe a binding stays as it is."""
    assert {} == exact_values(created(pod(gpushare()), Mode.OBSERVE), T4, POLICY)


def test_an_unknown_card_keeps_the_careful_values() -> None:
    """
    On a node that does not tell its cards the values stay as careful as they are.
    """
    dumb = gpu_node(node(name="dumb"))

    assert {} == exact_values(created(pod(gpushare())), dumb, NO_CARD)


def test_a_doubtful_unit_keeps_the_careful_values() -> None:
    """On a node whose unit is open the values stay as they are."""
    doubtful = gpu_node(node(card(), allocatable={names.GPUSHARE_MEMORY: "700"}))

    assert {} == exact_values(created(pod(gpushare())), doubtful, POLICY)


def test_a_pod_without_a_limit_is_left() -> None:
    """A pod whose limit could not be read has nothing to make exact."""
    asked = pod(container(**{names.NVIDIA_GPU: "1"}), annotations={names.MEMORY: "junk"})

    assert {} == exact_values(created(asked), T4, POLICY)


def test_the_operators_card_stands_in() -> None:
    """
    Where the node does not tell its cards but the operator does, that card counts.
    """
    dumb = gpu_node(node(name="dumb"))
    bound = created(pod(gpushare(units="10")))
    policy = replace(POLICY, default=POLICY.default._replace(memory_bytes=20 * 2**30))
    exact = exact_values(bound, dumb, policy)

    assert "0.350000" == value(exact, bound, names.XLA_FRACTION)
