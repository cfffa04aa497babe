"""The judge chooses the pods that the words of docs/isolation.md choose, and no others."""

import random
from dataclasses import dataclass, field

import pytest

from agent.judge.standing import account_of, shortage_of, standing
from agent.model.pod import PodLimit
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.integration.agent.chaos import card
from tests.integration.agent.chaos.card import Moment, Words, stand_of
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES

UUID = CARDS[0].uuid
SCENES = 600


@dataclass
class Scene:
    """One look at one card: what its pods are, hold and do."""

    world: World = field(default_factory=lambda: World(cards=1))
    people: dict[str, Words] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    going: set[str] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)
    free: int = T4_BYTES

    def enter(self, name: str, dice: random.Random) -> None:
        limit = dice.choice([1, 2, 4, 6, 9, 12]) * GIB
        below = dice.choice([None, GIB, 2 * GIB, 4 * GIB])
        request = below if below is not None and below < limit else None
        words = Words(
            name, limit, request, fenced=dice.random() < 0.8, injected=dice.random() > 0.2
        )
        going = dice.random() < 0.1
        self.world.add(
            pod(
                name,
                mode=Mode.EVICT if words.fenced else Mode.CAP,
                injected=words.injected,
                terminating=going,
                limits={UUID: PodLimit(limit, share_bytes=words.promise)},
            ),
            self._hold(words, dice),
        )
        uid = f"uid-{name}"
        self.held[uid] = self.world.holds[name, "main", 0] or 0
        if going:
            self.going.add(uid)
        else:
            self.people[uid] = words
        if dice.random() < 0.4:
            self.idle.add(uid)

    def _hold(self, words: Words, dice: random.Random) -> int:
        near = dice.choice([words.limit, words.promise, words.limit // 2, 2 * words.limit])
        used = near + dice.randrange(-300, 1000) * MIB + dice.randrange(MIB)
        used = max(min(used, self.free - 8 * MIB), MIB) if dice.random() > 0.2 else MIB
        self.free -= used
        return used


@pytest.mark.parametrize("seed", range(4))
def test_judge_chooses_whom_the_words_choose(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods over their limits, and borrowers, go by the judge as they go by the reference model."""
    monkeypatch.setattr(card, "SLACK", 0)
    dice = random.Random(seed)
    for number in range(SCENES):
        scene = Scene()
        for name in "abcdef"[: dice.randint(2, 6)]:
            scene.enter(name, dice)
        moment = Moment(scene.held, scene.free, T4_BYTES, 0, scene.going)
        stand = stand_of(moment, 0, scene.people, scene.idle, set(scene.held) - scene.idle)

        assert (stand.curing, stand.recalled) == _judged(scene), f"scene {number} of seed {seed}"


def _judged(scene: Scene) -> tuple[frozenset[str], frozenset[str]]:
    world = scene.world.settle_in()
    assert world.use is not None
    seen = world.use.cards[UUID]
    account = account_of(seen, world.use.pods, world.policy, scene.idle)
    uses = [standing(each, account, world.policy) for each in seen.pods.values()]
    short = shortage_of(seen, account, uses)
    return short.curing, short.curing | short.recalled
