"""
Pods with one number are judged as they were before any pod could borrow, tick by tick.

Recorded with commit d1b97c14, the last one whose judge knew no loans: `git archive d1b97c14` in an
empty folder, tests/support/agent/recording.py and tests/integration/agent/chaos/recorder.py put
there, and the recorder run with seed 3 (150 seconds, GPUFENCE_NODE_EVICTIONS_PER_MINUTE=6,
GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE=3), 5 (90 seconds, GPUFENCE_START_PAUSE_SECONDS=5,
GPUFENCE_SUSPEND_NAMESPACES=1) and 20261 (75 seconds): 6 agents on 3 cards, 943 ticks, 12,616
verdicts, 33 evictions and 8 that a budget refused.
"""

from dataclasses import fields
from pathlib import Path

import pytest

from agent.judge import judge, objection, settle
from agent.model.decision import Decision
from agent.model.memory import EMPTY, Memory
from tests.support.agent.recording import Gained, runs

PLAYS = sorted(Path("tests/golden/agent/chaos").glob("*.xz"))
GAINED: Gained = {
    "Blame": lambda _: {"above": "limit"},
    "Decision": lambda _: {"lending": frozenset()},
    "EvictionPolicy": lambda _: {"lend_after_seconds": 600.0, "give_back_seconds": 15.0},
    "Memory": lambda _: {"lenders": {}},
    "Observation": lambda _: {"idle": {}},
    "PodOnCard": lambda _: {"borrowed_bytes": 0, "recalled": False},
    "PodsOnNode": lambda _: {"bursting": False},
    "Shortage": lambda had: {"recalled_bytes": had["missing_bytes"], "recalled": frozenset()},
    "Verdict": lambda _: {"recalled": False},
    "Watch": lambda _: {"recall": EMPTY},
}
"""What fields say of pods with one number that the classes have gained since."""


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.stem)
def test_fixed_pods_keep_every_verdict(play: Path) -> None:
    """Pods whose request is their limit have the verdicts of the judge that knew no loans."""
    for calls in runs(play, GAINED):
        memory: Memory | None = None
        for number, (name, given, then) in enumerate(calls):
            if name == "objection":
                assert then == objection(*given), f"call {number}"
            elif name == "settle":
                assert memory is not None
                memory = settle(memory, *given[1:])
                assert [] == _changed(then, memory), f"call {number}"
            else:
                observation, begun, *more = given
                decision, memory = judge(observation, memory or begun, *more)
                changed = [*_verdicts(then[0], decision), *_changed(then[0], decision)]
                assert [] == [*changed, *_changed(then[1], memory)], f"call {number}"


def _changed(then: Decision | Memory, now: Decision | Memory) -> list[str]:
    """Name the fields that are not what they were; the values are too large to be shown."""
    names = [field.name for field in fields(then)]
    return [name for name in names if getattr(then, name) != getattr(now, name)]


def _verdicts(then: Decision, now: Decision) -> list[str]:
    return [
        f"{new.pod.name}: {new.outcome} {new.action}, was {old.outcome} {old.action}"
        for old, new in zip(then.verdicts, now.verdicts, strict=True)
        if old != new
    ]
