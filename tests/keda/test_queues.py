"""Queues and their workers, in good days and in bad ones."""

import datetime as dt
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise

import pytest

from gpufence import names
from kube import JsonObject, core
from tests.keda import report
from tests.keda.model import (
    LENGTH_SECONDS,
    LOADS,
    MESSAGE_SECONDS,
    Rule,
    Settings,
    arrivals,
    least_fixed,
)
from tests.keda.play import Collector, Outcome, outcome, play, send
from tests.keda.site import PACE, KedaSite, Sight, Watch
from tests.support.agent.node_site import pod, workload
from tests.support.controller.site import ControllerProcess
from tests.support.observing import eventually, wait_until

pytestmark = pytest.mark.keda

TARGETS = (5.0, 3.0)
TOO_LATE_SECONDS = 0.1


class Compared:
    """What became of one load: for each target the fewest fixed replicas, and both rules."""

    def __init__(self, load: str) -> None:
        self.load = load
        settings = Settings(rate=LOADS[load], rule=Rule.BUSY, length=LENGTH_SECONDS)
        self.times = arrivals(settings)
        self.least = {
            target: least_fixed(self.times, MESSAGE_SECONDS, target) for target in TARGETS
        }
        self.outcomes: dict[tuple[str, float], Outcome] = {}
        self.undone = 0

    def name(self, rule: str, target: float) -> str:
        return f"{self.load}-{rule}-{target:g}"

    def run(self, site: KedaSite, controller: str) -> None:
        named = {self.name(rule, t): (rule, t) for rule in report.RULES for t in TARGETS}
        for name, (rule, target) in named.items():
            site.deploy(name)
            site.scale(name, controller, target=target, busy=rule == report.OURS)
        played = play(site, list(named), self.times)
        if played.late > TOO_LATE_SECONDS:
            text = f"messages were sent {played.late:.2f} s late: let nothing else run beside this"
            pytest.fail(text, pytrace=False)
        for name, (rule, target) in named.items():
            self.outcomes[rule, target] = outcome(played, name, target)
            if rule == report.OURS:
                self.undone += len(self.times) - len(played.done[name])
        site.end(*named)
        today = dt.datetime.now(dt.UTC).date().isoformat()
        report.store(self.load, self.outcomes, self.least, today)


@pytest.fixture(scope="module", params=LOADS)
def compared(request: pytest.FixtureRequest, site: KedaSite) -> Compared:
    """Play a load with both rules and both targets at the same time."""
    made = Compared(request.param)
    with site.controller() as controller:
        controller.wait_until_leading()
        made.run(site, controller.url)
    return made


@pytest.mark.parametrize("target", TARGETS)
def test_ours_takes_little_more_than_the_least(compared: Compared, target: float) -> None:
    """On average there are at most a fifth more replicas than the fewest fixed ones."""
    mean = compared.outcomes[report.OURS, target].mean_replicas

    assert mean <= 1.2 * compared.least[target], compared.outcomes


@pytest.mark.parametrize("target", TARGETS)
def test_the_obvious_rule_takes_more_and_keeps_less(compared: Compared, target: float) -> None:
    """Backlog alone has more replicas on average, and lets more messages wait for too long."""
    ours, other = (compared.outcomes[rule, target] for rule in report.RULES)

    assert ours.mean_replicas < other.mean_replicas, compared.outcomes
    assert ours.over_target < other.over_target, compared.outcomes


def test_no_message_is_lost_and_no_replica_waits(compared: Compared) -> None:
    """Every message is worked off, and nobody's ceiling is above the cards."""
    pending = [item.most_pending for (rule, _), item in compared.outcomes.items() if rule == "ours"]

    assert (0, [0, 0]) == (compared.undone, pending)


def test_the_plain_broker_of_other_tests_is_like_this_one(site: KedaSite) -> None:
    """What tests ask of the broker that other tests have, they get from RabbitMQ."""
    command = (sys.executable, "-m", "pytest", "-q", "-n0", "tests/contract/test_broker.py")
    told = os.environ | {"GPUFENCE_TEST_BROKER": str(site.broker.stomp)}
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout


def test_the_example_is_taken_by_the_api_server(
    site: KedaSite, controller: ControllerProcess
) -> None:
    """Both triggers for what waits pass the API server with KEDA's own definitions."""
    site.deploy("example")
    by_broker, by_prometheus = (site.example("example", controller.url) for _ in range(2))
    by_prometheus[-1]["spec"]["triggers"][0] = site.measuring("example")
    for made in (by_broker, by_prometheus):
        text = report.as_list(made)
        done = site.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text, check=False)

        assert 0 == done.returncode, done.stderr
    site.end("example")


QUICKLY = 120.0
"""Seconds of a cluster without work, before the last replica goes."""
OUTAGE = 240.0
"""Twice as long as the autoscaler waits, and shorter than the cooldown."""
LONG = 200.0
LONG_COOLDOWN = 20.0
"""A message of ten minutes against a cooldown of one, both three times shorter."""

Trouble = Callable[[KedaSite, ControllerProcess], AbstractContextManager[None]]


def test_a_message_wakes_the_first_worker(site: KedaSite, controller: ControllerProcess) -> None:
    """From zero replicas to a message that is worked on, and later back to zero."""
    site.deploy("wakes")
    site.scale("wakes", controller.url, cooldown=QUICKLY)
    with Collector(site.broker, "wakes.done") as collector:
        time.sleep(3)
        asleep = site.sight("wakes").wanted
        send(site.broker, "wakes", MESSAGE_SECONDS)
        wait_until(lambda: collector.done, "nobody woke")
        report.store_figure("from zero to working", collector.done[0].waited * PACE)
        back = eventually(lambda: site.sight("wakes").wanted == 0)
    site.end("wakes")

    assert asleep == 0
    assert collector.done[0].waited * PACE < 90, "poll, start and a margin"
    assert back


def test_seconds_for_a_message_are_measured(site: KedaSite, controller: ControllerProcess) -> None:
    """How long a message takes Prometheus knows after a while, and KEDA scales by it."""
    site.deploy("measured")
    site.scale("measured", controller.url, measured=True)
    times = [second / 2 for second in range(500)]
    played = play(site, ["measured"], times)
    _, _, for_each = site.measuring("measured")["metadata"]["query"].partition(" * ")
    seconds = site.query(f"vector(1) * {for_each}") * PACE
    site.end("measured")
    report.store_figure("a message of 2 s, as Prometheus measures it", seconds)

    assert 0.75 * MESSAGE_SECONDS < seconds < 1.25 * MESSAGE_SECONDS
    assert max(one.wanted for one in played.sights["measured"]) >= 4


def test_a_long_message_outlives_the_cooldown(
    site: KedaSite, controller: ControllerProcess
) -> None:
    """A worker that is busy for ten cooldowns finishes; by backlog alone it is taken before."""
    for name, busy in (("long-ours", True), ("long-obvious", False)):
        site.deploy(name, grace_seconds=5.0)
        site.scale(name, controller.url, cooldown=LONG_COOLDOWN, busy=busy)
    with (
        Watch(site, ["long-ours", "long-obvious"]) as sights,
        Collector(site.broker, "long-ours.done") as ours,
        Collector(site.broker, "long-obvious.done") as obvious,
    ):
        for name in ("long-ours", "long-obvious"):
            send(site.broker, name, LONG)
        wait_until(lambda: ours.done, "the long message was never done", LONG / PACE + 60)
        taken_away = _fell(sights["long-obvious"])
    site.end("long-ours", "long-obvious")

    assert not ours.done[0].again
    assert taken_away
    assert [] == obvious.done


def test_a_ceiling_from_the_cards_leaves_nobody_waiting(
    site: KedaSite, controller: ControllerProcess
) -> None:
    """The controller's ceiling is what neighbours leave of the cards; without it replicas wait."""
    neighbours = [_neighbour(card) for card in range(8)]
    for item in neighbours:
        site.admin.post(core("namespaces", site.team, "pods"), item)
    wait_until(lambda: all(_runs(site, item["metadata"]["name"]) for item in neighbours))
    time.sleep(2)
    for name in ("fits", "waits"):
        site.deploy(name, units=2)
    wait_until(lambda: site.ceiling("fits", controller.url), "the controller knows no owner")
    fitting = site.ceiling("fits", controller.url)
    for name, ceiling, busy in (("fits", fitting, True), ("waits", 60, False)):
        site.scale(name, controller.url, most=ceiling, cooldown=QUICKLY, busy=busy)
    most, pending = _flooded(site, "fits")
    site.end("fits")
    _, waiting = _flooded(site, "waits")
    site.end("waits")
    for item in neighbours:
        site.drop(core("namespaces", site.team, "pods", item["metadata"]["name"]))

    assert 16 == fitting, "8 cards with 4 units left on each, of which a worker takes 2"
    assert (fitting, 0) == (most, pending)
    assert waiting > 0


@contextmanager
def controller_away(_: KedaSite, controller: ControllerProcess) -> Iterator[None]:
    """Stop the controller in the middle of everything, so that nobody answers."""
    controller.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        controller.process.send_signal(signal.SIGCONT)


@contextmanager
def agent_hung(site: KedaSite, _: ControllerProcess) -> Iterator[None]:
    """Stop the node's agent, so that nobody knows what its pods do."""
    site.agent_process.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        site.agent_process.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("trouble", [controller_away, agent_hung])
def test_while_nobody_knows_who_works_nobody_is_taken_away(
    site: KedaSite, controller: ControllerProcess, trouble: Trouble
) -> None:
    """
    Replicas stay though their queue is empty for longer than the autoscaler waits, a message still
    wakes a first worker elsewhere, and with the answer back replicas go.
    """
    stays, wakes = f"stays-{trouble.__name__[:5]}", f"woken-{trouble.__name__[:5]}"
    for name in (stays, wakes):
        site.deploy(name)
        site.scale(name, controller.url)
    with (
        Collector(site.broker, f"{wakes}.done") as woken,
        Collector(site.broker, f"{stays}.done") as done,
    ):
        for _ in range(20):
            send(site.broker, stays, 5 * MESSAGE_SECONDS)
        wait_until(lambda: len(done.done) >= 10, "no work, no replicas")
        with trouble(site, controller), Watch(site, [stays]) as sights:
            send(site.broker, wakes, MESSAGE_SECONDS)
            time.sleep(OUTAGE / PACE)
        stayed = [one.wanted for one in sights[stays]]
        awake = len(woken.done)
    gone = eventually(lambda: site.sight(stays).wanted == 1)
    site.end(stays, wakes)

    assert stayed
    assert sorted(stayed) == stayed, "it was scaled down"
    assert min(stayed) >= 3
    assert 1 == awake
    assert gone


def _flooded(site: KedaSite, name: str) -> tuple[int, int]:
    """Flood a queue; return the most replicas that were wanted, and the most that had no card."""
    with Watch(site, [name]) as sights:
        for _ in range(300):
            send(site.broker, name, MESSAGE_SECONDS)
        time.sleep(150 / PACE)
    return max(one.wanted for one in sights[name]), max(one.pending for one in sights[name])


def _fell(sights: Sequence[Sight]) -> bool:
    return any(before.wanted > after.wanted for before, after in pairwise(sights))


def _neighbour(card: int) -> JsonObject:
    limits = {"limits": {names.GPUSHARE_MEMORY: "11"}}
    return pod(
        f"neighbour-{card}",
        workload("hold 1Gi", resources=limits),
        annotations={names.GPUSHARE_CARD_INDEX: str(card), names.INJECTED: "nothing"},
    )


def _runs(site: KedaSite, name: str) -> bool:
    status = site.pod(site.team, name)["status"]
    return bool(status.get("phase") == "Running")
