"""
Whatever happens: nobody is evicted wrongly, nobody who must go stays, and memory stays what it is.

The seed names a whole plan. `GPUFENCE_CHAOS_SEED` plays one again, `GPUFENCE_CHAOS_SECONDS` sets
the length of the long run. The times of the agent are a fifteenth of those it comes with, so that
an hour's worth of violations fits; the short run takes a little more than a minute, nearly all of
it waiting.
"""

import statistics
import sys

import pytest

from gpufence import names
from gpufence.quantity import MIB
from kube import core
from simulator.progress import Progress
from tests.integration.agent.chaos.people import MODES, long_program, short_program
from tests.integration.agent.chaos.play import Plan, Play, planned, said_seconds, said_seed
from tests.integration.agent.chaos.promise import findings
from tests.integration.agent.chaos.stage import CARDS, PROMISE, Stage, staged
from tests.integration.agent.chaos.truth import Span
from tests.support.observing import eventually

SHORT_SEED = 20261
SHORT_SECONDS = 75.0
LONG_SECONDS = 1800.0
COUNT = CARDS.count(",") + 1
MOST_GROWTH = 4 * MIB
LAST_WORD_SECONDS = 3.0
OWN_EVENTS = 2
"""Of an owner's pods, so many have an Event of their own in any case."""
_WARM = 0.25


def played(plan: Plan) -> list[int]:
    """Play a plan and hold what happened against what was promised; return the memory held."""
    progress = Progress(sys.stderr)
    with staged() as stage:
        play = Play(stage, plan, progress)
        play.run()
        result = findings(stage.observer.history, PROMISE)
        eventually(lambda: not untold(stage))
        unexplained = untold(stage)
        bugs = [line for line in stage.agent.lines if line.get("level") == "error"]
    progress.say(
        f"seed {plan.seed}: {len(plan.people)} pods, {result.evictions} evictions,"
        f" {result.loans} of borrowers, {result.violations} violations in plain sight,"
        f" the longest {result.latest:.1f} s"
    )
    said = f"seed {plan.seed}"

    assert () == result.false, "\n".join([said, *result.false])
    assert () == result.missed, "\n".join([said, *result.missed])
    assert [] == bugs, said
    assert [] == unexplained, said
    assert result.evictions >= plan.seconds / 20, f"{said} proves nothing"
    assert result.violations >= plan.seconds / 30, f"{said} proves nothing"
    assert result.loans >= 1, f"{said} proves nothing of loans"
    return play.memory


def untold(stage: Stage) -> list[str]:
    """
    Name the pods whose eviction is not told by exactly one Event, of the pod or, once its owner
    has had its allowance of the hour, of the owner alone.

    Only an agent that was killed right after an eviction takes its word with it.
    """
    history = stage.observer.history
    silenced = [Span(start.stopped_at - LAST_WORD_SECONDS, start.at) for start in history.starts]
    told, counting = tellings(stage)
    return [
        life.words.name
        for life in history.lives.values()
        if life.evicted is not None
        and told.get(life.uid, int(life.words.namespace in counting)) != 1
        and not any(
            life.evicted.since < until and since < life.evicted.until for since, until in silenced
        )
    ]


def tellings(stage: Stage) -> tuple[dict[str, int], set[str]]:
    """
    Count the Events that tell of an eviction by the UID of the pod, and name the namespaces in
    which an owner's Event has counted on without its pods.
    """
    found: dict[str, int] = {}
    counting: set[str] = set()
    for namespace in MODES:
        events = stage.client.list(core("namespaces", namespace, "events"))
        for event in events.items:
            if event["reason"] != names.EVICTED:
                continue
            if event["involvedObject"]["kind"] == "Pod":
                uid = event["involvedObject"]["uid"]
                found[uid] = found.get(uid, 0) + 1
            elif event["count"] > OWN_EVENTS:
                counting.add(namespace)
    return found, counting


@pytest.mark.nightly
@pytest.mark.usefixtures("assets")
def test_a_minute_of_chaos() -> None:
    """In a minute of everything that goes wrong the agent keeps every promise."""
    plan = planned(said_seed(SHORT_SEED), SHORT_SECONDS, lambda dice: short_program(dice, COUNT))

    played(plan)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("assets")
def test_chaos_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    """In half an hour of it the agent keeps every promise, and its memory stays what it was."""
    seconds = said_seconds(LONG_SECONDS)
    plan = planned(said_seed(None), seconds, lambda dice: long_program(dice, COUNT, seconds))
    with capsys.disabled():
        held = played(plan)
    warm = held[int(len(held) * _WARM) :]
    half = len(warm) // 2
    earlier, later = statistics.median(warm[:half]), statistics.median(warm[half:])
    growth = later - earlier
    with capsys.disabled():
        said = f"agent and child: {earlier / MIB:.1f} MiB, later {later / MIB:.1f} MiB"
        Progress(sys.stderr).say(said)

    assert growth < MOST_GROWTH, f"{growth / MIB:.1f} MiB more in the second half"
