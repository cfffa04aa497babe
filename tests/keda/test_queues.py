"""Two rules beside each other on real KEDA: what they take, and how long messages wait."""

import datetime as dt
import os
import subprocess
import sys

import pytest

from tests.keda import report
from tests.keda.loads import LENGTH_SECONDS, LOADS, MESSAGE_SECONDS
from tests.keda.model import Rule, Settings, arrivals, least_fixed
from tests.keda.play import Outcome, outcome, play
from tests.keda.site import KedaSite
from tests.support.controller.process import ControllerProcess

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
    """
    On average there are at most a fifth more replicas than the fewest fixed ones that hold the
    target.
    """
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
    command = (sys.executable, "-m", "pytest", "-q", "-n0", "tests/contract/broker")
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
