"""A driver that takes long to list processes, on one card or on all of them."""

import time
from collections.abc import Iterator

import pytest

from simulator.nvml.faults import Fault
from tests.support.agent.node_site import NodeSite, fenced_pod, is_gone, place
from tests.support.observing import PATIENCE_SECONDS, eventually

LISTS = "nvmlDeviceGetComputeRunningProcesses"
CARDS = range(8)
THIEF = "hold 5Gi"
TOLERATED = "hold 2Gi"
"""Above the limit by its context, so that every card has to be listed in every look."""


@pytest.fixture(autouse=True)
def well_in_the_end(site: NodeSite) -> Iterator[None]:
    yield
    site.node.state.faults.clear()


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


def test_lists_that_add_up(site: NodeSite, namespace: str) -> None:
    """Lists of eight cards that take longer together than three intervals blind no one."""
    slow = dict.fromkeys(CARDS, 0.11)
    settings = {
        "GPUFENCE_INTERVAL_SECONDS": "0.2",
        "GPUFENCE_HOLD_SECONDS": "1.5",
        "GPUFENCE_LIST_SECONDS": "2",
        "GPUFENCE_NVML_DEADLINE_SECONDS": "3",
    }
    took = seconds_until_gone(site, namespace, slow, **settings)

    assert took < PATIENCE_SECONDS


@pytest.mark.soak
@pytest.mark.timeout(240)
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
