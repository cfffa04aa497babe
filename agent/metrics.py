"""PURE. The page of metrics, made from the last state when somebody asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.decision import Action, Answer, Brake
from agent.usage_metrics import by_namespace, card_families, pod_families
from service.exposition import Family, Histogram, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.model.state import About, AgentState, Counts, TickResult
    from service.exposition import Metric

_TICK = "gpufence_agent_tick_duration_seconds"


def page(state: AgentState, about: About, now: float) -> str:
    """Write what is known at this moment; figures of a look that is too old are left out."""
    last = state.last if state.is_current(now, about.gap_seconds) else None
    return write_page(
        [
            *pod_families(last, state.activity, now),
            *card_families(last),
            *_measuring(state, about, now),
            *_acting(state.counts, last),
            *_cluster(about, state.counts),
            _info(about),
        ]
    )


def _measuring(state: AgentState, about: About, now: float) -> Iterator[Metric]:
    counts = state.counts
    age = None if state.measured_at is None else round(max(now - state.measured_at, 0.0), 3)
    yield _gauge("gpufence_sample_age_seconds", "Time since any card could last be read.", age)
    yield _counter(
        "gpufence_nvml_restarts_total",
        "Children that measured and had to be replaced.",
        about.restarts,
    )
    yield Histogram(
        _TICK, "Time from the look at the cards to all that follows.", (({}, counts.ticks),)
    )
    yield _counter(
        "gpufence_agent_ticks_skipped_total",
        "Ticks left out since the one before took too long.",
        counts.skipped,
    )
    yield _counter(
        "gpufence_agent_ticks_failed_total", "Ticks that ended in a bug of ours.", counts.failed
    )


def _acting(counts: Counts, last: TickResult | None) -> Iterator[Metric]:
    yield _evictions(counts)
    yield by_namespace(
        "gpufence_violations_total",
        "counter",
        "Times a pod went over its limit on a card.",
        counts.violations,
    )
    yield Family(
        "gpufence_brake",
        "gauge",
        "Whether a brake stops evictions on this node, all of them or those of a unit.",
        () if last is None else tuple(_brakes(last.decision.brake)),
    )


def _brakes(brake: Brake | None) -> Iterator[tuple[dict[str, str], float]]:
    for each in (Brake.START, Brake.STALE_PODS, Brake.SUSPENDED):
        yield {"reason": each.name.lower()}, float(each is brake)


def _evictions(counts: Counts) -> Family:
    """Show every combination from the beginning, at zero: a rate needs the time before, too."""
    return Family(
        "gpufence_evictions_total",
        "counter",
        "Pods that were to go, by how and by what became of it.",
        tuple(
            (
                {"action": str(action), "result": str(answer)},
                counts.evictions.get((str(action), str(answer)), 0),
            )
            for action in Action
            for answer in Answer
        ),
    )


def _cluster(about: About, counts: Counts) -> Iterator[Metric]:
    status = about.cluster
    if status is None:
        return
    yield _gauge(
        "gpufence_cluster_silence_seconds",
        "Longest time that any watch of the API server has heard nothing.",
        status.silence_seconds,
    )
    yield _gauge(
        "gpufence_cluster_fresh",
        "Whether what is known of the pods may be acted on.",
        float(status.fresh),
    )
    yield _gauge(
        "gpufence_cluster_published",
        "Whether the Node says which cards it has.",
        float(status.published),
    )
    yield Family(
        "gpufence_cluster_info",
        "gauge",
        "Always 1: as whom the agent acts, and what the kill switch allows.",
        (({"identity": str(status.identity), "highest": str(status.highest)}, 1.0),),
    )
    yield _counter("gpufence_events_written_total", "Events written.", status.events_written)
    yield Family(
        "gpufence_events_dropped_total",
        "counter",
        "Events not written, by why.",
        (
            ({"reason": "rate"}, counts.muted),
            ({"reason": "queue"}, status.events_dropped),
            ({"reason": "refused"}, status.events_refused),
        ),
    )


def _info(about: About) -> Family:
    return Family(
        "gpufence_build_info",
        "gauge",
        "Always 1: the agent's node and version.",
        (({"node": about.node, "version": about.version}, 1.0),),
    )


def _gauge(name: str, text: str, value: float | None) -> Family:
    return Family(name, "gauge", text, (({}, value),))


def _counter(name: str, text: str, value: float) -> Family:
    return Family(name, "counter", text, (({}, value),))
