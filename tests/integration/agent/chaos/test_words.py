"""The judge chooses the pods that the words of docs/isolation.md choose, at the promised time."""

import random
from dataclasses import dataclass, field

import pytest

from agent.judge.standing import account_of, shortage_of, standing
from agent.model.pod import PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.integration.agent.chaos import card
from tests.integration.agent.chaos.card import Moment, Words, stand_of
from tests.integration.agent.chaos.promise import Findings, Promise, findings
from tests.integration.agent.chaos.truth import History, Life, Span
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES

UUID = CARDS[0].uuid
SCENES = 600
SEEDS = range(2)
SECONDS = 200
LOANS = Promise(
    interval_seconds=1.0,
    list_seconds=1.0,
    hold_seconds=30.0,
    short_hold_seconds=3.0,
    grace_seconds=120.0,
    give_back_seconds=6.0,
    lend_after_seconds=12.0,
    spare_seconds=0.0,
)


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


@dataclass
class Lent:
    """A card on which pods lend and borrow by a seed, and what truly happens there."""

    world: World
    dice: random.Random
    history: History = field(default_factory=History)
    wants: dict[str, tuple[int, int]] = field(default_factory=dict)

    def lived(self) -> Findings:
        self._enter(Words("lender", 7 * GIB))
        self._enter(Words("sleeper", 4 * GIB))
        for second in range(SECONDS):
            if "borrower" not in {name.partition("-")[0] for name in self.world.pods}:
                self._enter(Words(f"borrower-{second}", 12 * GIB, 2 * GIB))
            for name in self.world.pods:
                self._change(name, second)
            self.world.run(second + 1)
            self._look(second)
        return findings(self.history, LOANS)

    def _enter(self, words: Words) -> None:
        limits = {UUID: PodLimit(words.limit, share_bytes=words.promise)}
        self.world.add(pod(words.name, namespace=words.name, limits=limits))
        self.wants[words.name] = 0, 0
        uid, now = f"uid-{words.name}", float(self.world.now)
        self.history.lives[uid] = Life(uid, words, made_at=now, moved_at=now)

    def _change(self, name: str, second: int) -> None:
        """Have a pod hold what it wants as far as that is free, and want something else later."""
        life = self.history.lives[f"uid-{name}"]
        until, wanted = self.wants[name]
        if second >= until:
            wanted = self.dice.choice(
                [200 * MIB, life.words.limit // 2, life.words.limit - 100 * MIB]
            )
            self.wants[name] = second + self.dice.randint(5, 40), wanted
        others = sum(used or 0 for key, used in self.world.holds.items() if key[0] != name)
        self.world.hold(name, min(wanted, T4_BYTES - others))
        self.world.idle[name] = second - life.moved_at

    def _look(self, second: int) -> None:
        """Write down how the card stands for the reference model, and what the judge did."""
        world, lives = self.world, self.history.lives
        held = {f"uid-{name}": used or 0 for (name, _, _), used in world.holds.items()}
        for act in world.acts:
            life = lives[f"uid-{act.pod}"]
            life.evicted = life.evicted or Span(act.second, act.second)
        seen, after = Span(float(second - 1), float(second)), LOANS.lend_after_seconds
        for uid, used in held.items():
            lives[uid].moved(used, seen.until)
        there = {uid: lives[uid].words for uid in held if uid not in self._going()}
        stand = stand_of(
            Moment(held, T4_BYTES - sum(held.values()), T4_BYTES, 0, self._going()),
            0,
            there,
            {uid for uid in there if lives[uid].sleeps(seen.until, after, 0.0)},
            {uid for uid in there if lives[uid].wakes(seen.until, after)},
        )
        for uid, used in held.items():
            lives[uid].saw(0, used, seen, stand)
        if self._going():
            self.history.left(0, seen)

    def _going(self) -> set[str]:
        return {f"uid-{name}" for name, each in self.world.pods.items() if each.terminating}


@pytest.mark.parametrize(
    ("give_back", "lend_after", "wrong"),
    [
        pytest.param(6.0, 12.0, "", id="as promised"),
        pytest.param(30.0, 12.0, "missed", id="asked for too long"),
        pytest.param(1.0, 12.0, "false", id="asked too shortly"),
        pytest.param(6.0, 2.0, "missed", id="lent too soon"),
        pytest.param(6.0, 0.0, "false", id="never lent"),
    ],
)
def test_the_reference_model_knows_a_judge_of_other_times(
    give_back: float, lend_after: float, wrong: str
) -> None:
    """A judge that keeps the promised times is found right, and one that does not wrong."""
    policy = EvictionPolicy(give_back_seconds=give_back, lend_after_seconds=lend_after)
    worlds = {seed: World(policy, cards=1, leaves_after=2) for seed in SEEDS}
    found = [Lent(world, random.Random(seed)).lived() for seed, world in worlds.items()]
    kinds = [kind for kind in ("false", "missed") for each in found if getattr(each, kind)]

    assert kinds == [] if not wrong else wrong in kinds
    assert sum(each.loans for each in found) >= len(SEEDS)
