"""Whatever the cards do, slow lists among it: pods within their limits stay, others are evicted."""

import time
from collections.abc import Iterator

import pytest

from gpufence import names
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from tests.support.agent.node_site import (
    OVER,
    WITHIN,
    NodeSite,
    fenced_pod,
    is_gone,
    place,
    wait_until_gone,
)
from tests.support.observing import eventually

LISTS = "nvmlDeviceGetComputeRunningProcesses"
MEMORY = "nvmlDeviceGetMemoryInfo"

HARMLESS = {
    1: Fault(FaultAction.DUPLICATE, LISTS, 1, 3),
    2: Fault(FaultAction.PAD, LISTS, 2, 5),
}
BLINDING = {
    3: Fault(FaultAction.GARBLE, card=3),
    4: Fault.code(NvmlCode.GPU_IS_LOST, card=4),
    5: Fault(FaultAction.NOT_AVAILABLE, LISTS, 5),
    6: Fault(FaultAction.ZERO, LISTS, 6),
    7: Fault(FaultAction.KEEP, LISTS, 7, 0),
}


@pytest.fixture(autouse=True)
def well_in_the_end(site: NodeSite) -> Iterator[None]:
    """Let everything work again."""
    yield
    site.node.state.faults.clear()


def test_each_card_has_its_own_trouble(site: NodeSite, namespace: str) -> None:
    """
    Eight cards with a violator each, and an innocent where a fault hides the truth about both.
    """
    ground = site.ground(namespace)
    pods = [fenced_pod(f"good-{card}", WITHIN, card) for card in BLINDING]
    pods += [fenced_pod(f"greedy-{card}", OVER, card) for card in range(8)]
    with site.agent() as agent:
        assert eventually(lambda: len(agent.snapshot().cards) == 8)
        for fault in (*HARMLESS.values(), *BLINDING.values()):
            site.node.state.faults.add(fault)
        place(ground, *pods)
        for card in (0, *HARMLESS):
            wait_until_gone(ground, f"greedy-{card}", agent)
        spared = [card for card in BLINDING if not is_gone(ground, f"greedy-{card}")]
        blind = agent.metrics()
        site.node.state.faults.clear()
        for card in BLINDING:
            wait_until_gone(ground, f"greedy-{card}", agent)

    assert list(BLINDING) == spared
    assert_no_zero(blind)
    assert 8 == sum(name.startswith("gpufence_card_info{") for name in blind)
    assert {False} == {is_gone(ground, f"good-{card}") for card in BLINDING}


@pytest.mark.parametrize(
    ("action", "function"),
    [(FaultAction.HANG, MEMORY), (FaultAction.CRASH, LISTS)],
    ids=["hang", "crash"],
)
def test_a_card_that_hangs_or_kills_its_reader_is_alone_in_that(
    site: NodeSite, namespace: str, action: FaultAction, function: str
) -> None:
    """
    A call that never returns, or takes the child with it, delays only the verdict on its card.
    """
    ground = site.ground(namespace)
    site.node.state.faults.add(Fault(action, function, 1))
    with site.agent() as agent:
        place(
            ground,
            fenced_pod("good", WITHIN, 1),
            fenced_pod("greedy", OVER, 1),
            fenced_pod("elsewhere", OVER, 0),
        )
        wait_until_gone(ground, "elsewhere", agent)
        spared = not is_gone(ground, "greedy")
        blind = agent.metrics()
        site.node.state.faults.clear()
        wait_until_gone(ground, "greedy", agent)

    assert spared
    assert_no_zero(blind)
    assert blind["gpufence_nvml_restarts_total"] > 0
    assert not is_gone(ground, "good")


def test_a_lost_driver_is_waited_for(site: NodeSite, namespace: str) -> None:
    """
    Without NVML nothing is shown as measured and nobody is evicted; with it, the violator goes.
    """
    ground = site.ground(namespace)
    with site.agent() as agent:
        place(ground, fenced_pod("good", WITHIN))
        agent.wait_for_outcome("good", "within")
        site.node.state.faults.add(Fault.code(NvmlCode.UNKNOWN))
        place(ground, fenced_pod("greedy", OVER))
        seen = "gpufence_last_sample_timestamp_seconds"
        assert eventually(lambda: time.time() - agent.metrics()[seen] > 1)
        blind = agent.metrics()
        assert eventually(lambda: _node_events(site) > 0)
        health = agent.get("/healthz")
        spared = not is_gone(ground, "greedy")
        site.node.state.faults.clear()
        wait_until_gone(ground, "greedy", agent)

    assert spared
    assert (200, "ok\n") == health
    assert [] == [name for name in blind if name.startswith("gpufence_pod_memory_used")]
    assert [] == [name for name in blind if name.startswith("gpufence_card_memory_used")]
    assert not is_gone(ground, "good")


def assert_no_zero(metrics: dict[str, float]) -> None:
    """What is unknown has no line; nobody who holds memory is said to hold none."""
    used = [value for name, value in metrics.items() if "pod_memory_used_bytes{" in name]

    assert 0 not in used


def _node_events(site: NodeSite) -> int:
    where = ("--field-selector", f"reason={names.NVML_UNAVAILABLE},involvedObject.name=")
    found = site.plane.kubectl(
        "get", "events", "-n", "default", where[0], where[1] + site.node.name, "-o", "name"
    )
    return len(found.stdout.split())


CARDS = range(8)
THIEF = "hold 5Gi"
TOLERATED = "hold 2Gi"
"""Above the limit by its context, so that every card has to be listed in every look."""


def seconds_until_gone(
    site: NodeSite, namespace: str, slow: dict[int, float], **settings: str
) -> float:
    """Return how long a thief stays on the last of the slow cards, each of which has a suspect."""
    ground = site.ground(namespace)
    for card, seconds in slow.items():
        site.node.state.faults.add(Fault.delay(seconds, LISTS, card))
    place(ground, *[fenced_pod(f"tolerated-{card}", TOLERATED, card) for card in CARDS])
    with site.agent(**settings) as agent:
        assert eventually(lambda: len(agent.snapshot().pods) >= len(CARDS))
        place(ground, fenced_pod("thief", THIEF, max(slow)))
        began = time.monotonic()
        assert eventually(lambda: is_gone(ground, "thief"), 120.0), agent.lines[-5:]
        took = time.monotonic() - began
    assert {False} == {is_gone(ground, f"tolerated-{card}") for card in CARDS}
    return took


@pytest.mark.soak
@pytest.mark.parametrize(
    "slow",
    [
        pytest.param(dict.fromkeys(CARDS, 0.45), id="0.45 s on each card"),
        pytest.param({7: 2.0}, id="2 s on one card"),
        pytest.param(dict.fromkeys(CARDS, 0.9), id="more than one look in all"),
        pytest.param({3: 2.0, 5: 2.0, 6: 1.5, 7: 2.0}, id="more than one look on four cards"),
    ],
)
def test_slow_lists_at_the_usual_pace(
    site: NodeSite, namespace: str, slow: dict[int, float]
) -> None:
    """A thief is evicted within the hold and three rounds of lists, however slow they are."""
    settings = {
        "GPUFENCE_INTERVAL_SECONDS": "1",
        "GPUFENCE_HOLD_SECONDS": "10",
        "GPUFENCE_LIST_SECONDS": "10",
        "GPUFENCE_NVML_DEADLINE_SECONDS": "5",
    }
    took = seconds_until_gone(site, namespace, slow, **settings)

    assert took < 10.0 + 3 * (sum(slow.values()) + 1.0) + 5.0
