"""
Workers of all kinds in accelerated time: none that is busy goes, and every one that is truly idle
does, in time.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from controller.model import ReleaseRules
from gpufence.idle import IdleWords
from tests.support.agent.world import Fault, Work
from tests.support.release_site import LOOK_SECONDS, MeasuredNode, Site, Worker, busy

KINDS = ("steady", "bursts", "computing", "loading", "children")
RULES = ReleaseRules()
TOLERANCE_SECONDS = 60.0
JOB_SLOTS = 2


@dataclass
class Plan:
    """What the pods of one owner do: phases of work of one kind, and phases of nothing at all."""

    kind: str
    dice: random.Random
    began: float = 0.0
    until: float = 0.0
    works: bool = False

    def doing(self, now: float) -> Work:
        self.follow(now)
        if not self.works:
            return Work.REST
        since = now - self.began
        if self.kind == "bursts":
            return Work.KERNELS if since % 50 < LOOK_SECONDS else Work.REST
        if self.kind == "computing":
            return Work.COMPUTING if since % 180 > 60 else Work.KERNELS
        if self.kind == "loading" and since < 90:
            return Work.LOADING
        if self.kind == "children" and since % 900 < LOOK_SECONDS:
            return Work.CHILD
        return Work.KERNELS

    def follow(self, now: float) -> None:
        while now > self.until:
            self.began, self.works = self.until or now, not self.works
            most = 3600 if self.works else 7200
            self.until = max(self.began, now) + self.dice.uniform(120, most)


@dataclass
class Figures:
    """What became of it."""

    looks: int = 0
    releases: int = 0
    contended: int = 0
    busy: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    latest_seconds: float = 0.0


class MixedSite:
    """
    Four nodes of four slots, ten owners, jobs that need half a node, people who want their workers
    back, agents that fail and leaders that end.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.plans = {f"w{place}": Plan(KINDS[place % 5], self.dice) for place in range(10)}
        workers = [
            Worker(name, 1 + place % 3, plan.doing, IdleWords(self.dice.choice([300, 900]), 60.0))
            for place, (name, plan) in enumerate(self.plans.items())
        ]
        self.job = Worker("job", 0, lambda _: Work.KERNELS, rung=None, slots=JOB_SLOTS)
        nodes = [MeasuredNode(f"node-{place}", 4) for place in range(4)]
        self.site = Site(nodes, [*workers, self.job], RULES)
        self.workers = workers
        self.faults: dict[str, tuple[Fault, float]] = {}
        self.job_until: float | None = None
        self.job_placed = False
        self.excused: dict[str, float] = {}
        self.contended_since: dict[str, float] = {}
        self.figures = Figures()

    def run(self, hours: float) -> Figures:
        for look in range(int(hours * 3600 / LOOK_SECONDS)):
            self._people()
            self._jobs()
            self.site.look(dict(self._wrong()))
            if look % 2:
                self.site.decide()
                self._judge()
        self.figures.looks = int(hours * 3600 / LOOK_SECONDS) * len(self.site.nodes)
        self.figures.releases = len(self.site.released)
        self.figures.busy = busy(self.site.released)
        self.figures.contended = sum(
            each.act.threshold_seconds == 60.0 for each in self.site.released
        )
        return self.figures

    def _people(self) -> None:
        """Bring back whatever has work, and now and then end the leader."""
        now = self.site.now
        for worker in self.workers:
            plan = self.plans[worker.name]
            plan.follow(now)
            if plan.works and not self.site.api.owners[worker.key].replicas:
                self.site.api.scale_by_hand(worker.key, worker.replicas)
        if self.dice.random() < LOOK_SECONDS / 14400:
            self.site.leader.forget()
            for worker in self.workers:
                self.excused[worker.name] = now + worker.words.after_seconds / 2

    def _jobs(self) -> None:
        now, placed = self.site.now, any(body.node for body in self.site.of(self.job.key))
        if self.job_until is None:
            if self.dice.random() < LOOK_SECONDS / 1200:
                self.site.api.scale_by_hand(self.job.key, 1)
                self.job_until, self.job_placed = now + 5400, False
        elif placed and not self.job_placed:
            self.job_until, self.job_placed = now + 900, True
        elif now > self.job_until:
            self.site.api.scale_by_hand(self.job.key, 0)
            self.job_until = None

    def _wrong(self) -> Iterator[tuple[str, Fault]]:
        for place, node in enumerate(self.site.nodes):
            name = node.room.node.name
            fault, until = self.faults.get(name, (Fault.NONE, 0.0))
            if self.site.now > until:
                fault = Fault.NONE
                if place % 2 and self.dice.random() < LOOK_SECONDS / 3600:
                    fault = self.dice.choice(list(Fault))
                    length = self.dice.choice([5.0, 20.0, 120.0, 600.0])
                    self.faults[name] = (fault, self.site.now + length)
            yield name, fault

    def _judge(self) -> None:
        """Find owners that should be gone for more than a minute."""
        now, decision = self.site.now, self.site.leader.decision
        assert decision is not None
        for worker in self.workers:
            standing = decision.standings.get(worker.key)
            if standing is None or not self.site.api.owners[worker.key].replicas:
                self.contended_since.pop(worker.name, None)
                continue
            if standing.contended:
                self.contended_since.setdefault(worker.name, now)
            else:
                self.contended_since.pop(worker.name, None)
            if decision.brake or standing.why.startswith("its time is up"):
                self.excused[worker.name] = now + worker.words.after_seconds / 2
            late = now - self._due(worker)
            self.figures.latest_seconds = max(self.figures.latest_seconds, late)
            if late > TOLERANCE_SECONDS:
                self.figures.late.append(f"{worker.name} is {late:g} s late: {standing}")

    def _due(self, worker: Worker) -> float:
        """Return when an owner ought to go at the latest, by what its pods truly do."""
        bodies = self.site.of(worker.key)
        nodes = {node.room.node.name: node for node in self.site.nodes}
        if not bodies or any(not body.node for body in bodies):
            return self.site.now
        since = max(max(body.active_at, nodes[body.node].fault_at) for body in bodies)
        due = since + worker.words.after_seconds
        if worker.name in self.contended_since:
            waited = self.contended_since[worker.name] + worker.words.contended_seconds / 2
            due = min(due, max(since + worker.words.contended_seconds, waited))
        holds = [max(body.ready_at or 0.0 for body in bodies) + RULES.warm_up_seconds]
        owner = self.site.api.seen(self.site.world().owners[worker.key])
        if owner.note is not None:
            holds.append((owner.note.woken_at or 0.0) + RULES.peace_seconds)
            holds.append(owner.note.left_alone_until or 0.0)
        return max(due, self.excused.get(worker.name, 0.0), *holds)


def held(figures: Figures) -> None:
    print(figures)  # noqa: T201 - the figures are what a soak is for

    assert [] == figures.busy
    assert [] == figures.late
    assert figures.releases


def test_an_hour_of_mixed_workers() -> None:
    """In an hour no busy worker is released, and every idle one within its time and a minute."""
    held(MixedSite(seed=16).run(hours=1))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_days_of_mixed_workers(seed: int) -> None:
    """The same in four days, four times."""
    held(MixedSite(seed).run(hours=96))
