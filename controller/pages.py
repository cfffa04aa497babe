"""What the controller shows when it is asked: how each owner stands, and its metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from controller.model import Step
from gpufence.idle import OwnerRelease, OwnerReleases, write_owners
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.cluster import WatchTrust
    from controller.loop import LastPass
    from controller.model import OwnerState


_PREFIX = "gpufence_controller_"


def owners_page(last: LastPass | None, trust: WatchTrust, now: float) -> str:
    """Write how each owner stands."""
    if last is None:
        brake = trust.trouble or "nothing is known yet"
        return write_owners(OwnerReleases(leader=False, at=now, brake=brake))
    owners = sorted(last.state.owners.items(), key=lambda pair: pair[0])
    return write_owners(
        OwnerReleases(
            leader=last.leads,
            at=last.state.now,
            brake=last.decision.brake,
            owners=tuple(_row(owner, last) for _, owner in owners),
        )
    )


def _row(owner: OwnerState, last: LastPass) -> OwnerRelease:
    standing = last.decision.standings.get(owner.key)
    row = OwnerRelease(
        *owner.key,
        way=str(owner.way),
        state="unknown",
        step=str(Step.NOTHING),
        why=owner.why_not,
        replicas=owner.replicas,
        rung="" if owner.rung is None else str(owner.rung),
        pods=len(owner.pods),
        note=owner.note,
    )
    if standing is None:
        return row
    return row._replace(
        state=standing.state,
        step=str(standing.step),
        why=standing.why,
        idle_since=standing.idle_since,
        deadline=standing.deadline,
        contended=standing.contended,
        waiters=standing.waiters,
    )


class ControllerCounts(NamedTuple):
    """What the parts have counted; `acts` by step and outcome."""

    acts: Mapping[tuple[str, str], int]
    failures: int
    events_written: int
    events_dropped: int
    agents_asked: int
    agents_silent: int


def families(
    last: LastPass | None, trust: WatchTrust, lease_seconds: float, counts: ControllerCounts
) -> Iterator[Family]:
    """Yield what is known at this moment."""
    yield from _of_pass(last)
    yield from _of_program(trust, lease_seconds, counts)


def by_step(name: str, text: str, counts: Mapping[tuple[str, str], int]) -> Family:
    samples = (
        ({"step": step, "outcome": outcome}, float(count))
        for (step, outcome), count in sorted(counts.items())
    )
    return Family(f"{_PREFIX}{name}", "counter", text, tuple(samples))


def gauge(name: str, text: str, value: float) -> Family:
    return Family(f"{_PREFIX}{name}", "gauge", text, (({}, float(value)),))


def _of_pass(last: LastPass | None) -> Iterator[Family]:
    if last is None:
        return
    standings = last.decision.standings.values()
    states = Counter((standing.key.namespace, standing.state) for standing in standings)
    yield Family(
        f"{_PREFIX}owners",
        "gauge",
        "Owners of GPU pods in fenced namespaces, by state",
        tuple(
            ({"namespace": namespace, "state": state}, count)
            for (namespace, state), count in sorted(states.items())
        ),
    )
    contended = sum(standing.contended for standing in standings)
    yield gauge("owners_contended", "Idle owners whose GPUs a pod waits for", contended)
    about = "Watched pods: on GPU nodes, or asking for a GPU"
    yield gauge("pods", about, len(last.state.pods))
    yield gauge("nodes", "Watched GPU nodes", len(last.state.nodes))
    yield gauge("brake", "Whether a brake stops all releases", bool(last.decision.brake))
    yield gauge("pass_seconds", "Duration of the last pass", round(last.seconds, 4))


def _of_program(
    trust: WatchTrust, lease_seconds: float, counts: ControllerCounts
) -> Iterator[Family]:
    yield gauge("leader", "Whether this replica is the leader", lease_seconds > 0)
    yield gauge("fresh", "Whether the state of the cluster is fresh enough to act on", trust.fresh)
    yield by_step("acts_total", "Acts, by step and outcome", counts.acts)
    yield _counter("passes_failed_total", "Passes that ended in a bug of ours", counts.failures)
    yield _counter("events_written_total", "Events written", counts.events_written)
    yield _counter(
        "events_dropped_total",
        "Events dropped: queue full or refused by the API server",
        counts.events_dropped,
    )
    yield _counter("agents_asked_total", "Questions to agents", counts.agents_asked)
    yield _counter(
        "agents_silent_total", "Questions to agents without a good answer", counts.agents_silent
    )


def _counter(name: str, text: str, value: float) -> Family:
    return Family(f"{_PREFIX}{name}", "counter", text, (({}, value),))
