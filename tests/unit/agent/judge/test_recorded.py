"""
Pods with one number are judged as they were before any pod could borrow, verdict by verdict.

The recording is of the judge at commit d1b97c14: `git archive d1b97c14 agent gpufence tests` in an
empty folder, this file put there, and `python -m tests.unit.agent.judge.test_recorded` run in it.
"""

import hashlib
import json
import random
from pathlib import Path

import pytest

from agent.model.decision import Answer
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import pod
from tests.support.agent.world import World

GOLDEN = Path("tests/golden/agent/verdicts.json")
SEEDS = range(20)
SECONDS = 150
POLICY = EvictionPolicy(
    grace_seconds=20, hold_seconds=6, short_hold_seconds=2, repeated_hold_seconds=(9, 12)
)
MODES = (Mode.EVICT, Mode.EVICT, Mode.EVICT, Mode.CAP, Mode.OBSERVE, None)


def played(seed: int) -> tuple[list[str], str]:
    """Play what a seed draws; return whose evictions were asked for, and a digest of all else."""
    dice = random.Random(seed)
    world = World(POLICY, started_at=float(dice.choice([-60, -10_000])))
    digest = hashlib.sha256()
    for second in range(SECONDS):
        if not second % 5 and len(world.pods) < 9:
            _enter(world, f"p{second}", dice)
        _change(world, dice)
        world.run(second + 1)
        for item in sorted(world.decision.verdicts, key=lambda each: (each.pod.uid, each.uuid)):
            due = None if item.due_seconds is None else round(item.due_seconds, 3)
            said = (item.pod.uid, item.uuid, item.outcome, item.brake, item.action, due)
            over = (round(item.over_seconds, 3), item.by_shortage)
            digest.update(f"{second} {said} {over}\n".encode())
    return [f"{act.second} {act.action} {act.pod}" for act in world.acts], digest.hexdigest()


def _enter(world: World, name: str, dice: random.Random) -> None:
    limit = dice.choice([GIB, 3 * GIB, 6 * GIB, None])
    namespace = dice.choice(["x", "y", "z"])
    more = {"enforced": dice.random() > 0.1, "injected": dice.random() > 0.1}
    made = pod(name, limit=limit, namespace=namespace, mode=dice.choice(MODES), **more)
    world.add(made, 100 * MIB, card=dice.randrange(2))


def _change(world: World, dice: random.Random) -> None:
    """Have some pods hold more or less, others be idle, and now and then something go wrong."""
    for name, container, card in list(world.holds):
        chance = dice.random()
        limit = next((each.limit_bytes for each in world.pods[name].limits.values()), GIB)
        wanted = dice.choice([limit // 2, limit, limit + 100 * MIB, limit + 300 * MIB, 2 * limit])
        if chance < 0.12:
            room = 14 * GIB - sum(
                used or 0 for key, used in world.holds.items() if key[2] == card and key[0] != name
            )
            world.hold(name, max(min(wanted, room), 0), card=card, container=container)
        elif chance < 0.13:
            world.hold(name, None, card=card, container=container)
        elif chance < 0.14 and name not in world.leaving:
            world.leaving[name] = world.now
    world.set(
        idle={name: float(dice.choice([5, 5000])) for name in world.pods if dice.random() < 0.5},
        unlisted={0} if dice.random() < 0.04 else set(),
        reachable=dice.random() > 0.02,
        renewed=dice.random() > 0.3,
        answer=dice.choice([Answer.ACCEPTED] * 5 + [Answer.BLOCKED]),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_pods_keep_every_verdict(seed: int) -> None:
    """Pods whose request is their limit have the verdicts of the judge that knew no loans."""
    acts, digest = json.loads(GOLDEN.read_text())[seed]

    assert (acts, digest) == played(seed)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps([played(seed) for seed in SEEDS], indent=0) + "\n")
