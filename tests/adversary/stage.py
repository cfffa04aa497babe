"""
A scheme played against the agent's deciding half, and what it took from fenced neighbours.

Two cards. A tenant's three pods, promised little, stand beside a neighbour who uses a third of what
he was promised, one a little over his limit, which is tolerated, and one without any fence.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from agent.model.bound import most_taken
from agent.model.decision import Answer
from agent.model.memory import Memory
from agent.model.pod import PodOnNode
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.adversary.tricks import THIEVES, Kind, Scheme, Trick
from tests.support.agent.builders import controller, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES

CARDS = 2
VICTIM, TOLERATED, UNFENCED = "victim", "tolerated", "unfenced"
INNOCENT = {
    VICTIM: (6 * GIB, 2 * GIB),
    TOLERATED: (3 * GIB, 3 * GIB + 100 * MIB),
    UNFENCED: (None, GIB),
}
"""What each was promised, and what each holds."""

PROMISED_TO_THIEF = GIB
HELD_BY_IDLE_THIEF = 256 * MIB
RESPAWN_SECONDS = 2
GRACE_SECONDS, LINGER_SECONDS = 5, 30
CROWD_NAMESPACES = 3
CROWD_PODS = 9
_CROWD_LIMIT = 128 * MIB


class Haul(NamedTuple):
    """
    What a scheme came to: the bytes times seconds that fenced neighbours lacked because of it while
    nothing impaired the agent, and how much of that the policy allows; how many of the tenant's
    pods went, and who went wrongly.
    """

    stolen: int
    allowed: int
    seconds: int
    evictions: int
    false: tuple[Act, ...]

    @property
    def broke_a_promise(self) -> bool:
        """Return whether somebody went wrongly, or more was taken than is allowed."""
        return bool(self.false) or self.stolen > self.allowed


def played(scheme: Scheme, seconds: int, policy: EvictionPolicy) -> Haul:
    """Play a scheme for so many seconds."""
    stage = _Stage(scheme, policy)
    stage.world.run(seconds, stage.second)
    stage.note_acts()
    return Haul(
        stolen=stage.stolen,
        allowed=allowed(policy, stage.most_excess, stage.seen, stage.gone),
        seconds=stage.seen,
        evictions=stage.evictions,
        false=tuple(stage.false),
    )


def allowed(policy: EvictionPolicy, excess_bytes: int, seconds: float, gone: int) -> int:
    """
    Return what a policy promises that the tenant's pods, so many of which came and went, take at
    most: never more than the largest excess, all the time.
    """
    stays = partial(most_taken, policy, excess_bytes, PROMISED_TO_THIEF, seconds=seconds)
    together = stays(gone=gone) + (THIEVES - 1) * stays()
    return round(min(together, excess_bytes * seconds))


@dataclass
class _Stage:
    scheme: Scheme
    policy: EvictionPolicy
    world: World = field(init=False)
    stolen: int = 0
    seen: int = 0
    evictions: int = 0
    gone: int = 0
    most_excess: int = 0
    false: list[Act] = field(default_factory=list)

    def __post_init__(self) -> None:
        lingers = any(trick.kind is Kind.LINGER for trick in self.scheme)
        self.world = World(
            self.policy, cards=CARDS, leaves_after=LINGER_SECONDS if lingers else GRACE_SECONDS
        )
        for name, (limit, held) in INNOCENT.items():
            mode = None if limit is None else Mode.EVICT
            item = pod(name, limit=limit, namespace=f"of-{name}", mode=mode)
            self.world.add(item, held)
        self.thieves: list[str] = []
        self.gone_at: dict[int, int] = {}
        self.excess: dict[str, int] = {}
        self.decoys: dict[str, int] = {}
        self.impaired_until = 0
        self.known_acts = 0
        self.made = 0
        for who in range(THIEVES):
            self.thieves.append("")
            self._respawn(who)
        self.world.settle_in()

    def second(self, now: int) -> None:
        """Do everything that this second has, and count what it takes."""
        self.note_acts()
        active = [trick for trick in self.scheme if trick.is_on(now)]
        self._befall(active, now)
        self._come_and_go(active, now)
        for who in range(THIEVES):
            self._take(who, [trick for trick in active if trick.who == who], now)
        if now >= self.impaired_until:
            self.seen += 1
            self.stolen += sum(self._stolen_from(card) for card in range(CARDS))

    def note_acts(self) -> None:
        """Hold every act since the last look against the truth."""
        for act in self.world.acts[self.known_acts :]:
            if self.excess.get(act.pod, 0) <= self.policy.report_margin_bytes:
                self.false.append(act)
            else:
                self.evictions += 1
                self.gone += 1
        self.known_acts = len(self.world.acts)

    def _befall(self, active: list[Trick], now: int) -> None:
        kinds = {trick.kind for trick in active}
        world = self.world
        world.answer = Answer.BLOCKED if Kind.SHIELD in kinds else Answer.ACCEPTED
        world.unlisted = set(range(CARDS)) if Kind.BLIND in kinds else set()
        world.reachable = Kind.AWAY not in kinds
        highest = Mode.OBSERVE if Kind.SWITCHED_OFF in kinds else Mode.EVICT
        for name, item in world.pods.items():
            if item.mode is not None and item.mode is not highest:
                world.change(name, mode=highest)
        pause = self.policy.gap_seconds
        if any(trick.kind is Kind.RESTART and trick.begins(now) for trick in active):
            world.memory, world.use = Memory(now), None
            pause += self.policy.start_pause_seconds
        elif not any(trick.kind.befalls for trick in active):
            return
        # All counting may begin anew; a pod that is seen for the first time has its grace again.
        rest = pause + max(self.policy.grace_seconds, 0.0) + self.policy.hold_seconds
        self.impaired_until = max(self.impaired_until, now + 1 + round(rest))

    def _come_and_go(self, active: list[Trick], now: int) -> None:
        """Make the pods again that went, and the decoys and the crowd that a scheme asks for."""
        world = self.world
        for who, name in enumerate(self.thieves):
            if name not in world.pods:
                self.gone_at.setdefault(who, now)
                if now >= self.gone_at[who] + RESPAWN_SECONDS:
                    self._respawn(who)
        for name, until in list(self.decoys.items()):
            if now >= until:
                self.gone += 1 if name in world.pods and self.excess[name] else 0
                world.remove(name)
                del self.decoys[name]
        for trick in active:
            if trick.kind is Kind.DECOYS and trick.begins(now) and len(self.decoys) < CROWD_PODS:
                name = self._add("decoy", "thief", min(trick.mebibytes, 900) * MIB)
                world.change(name, terminating=True)
                self.decoys[name] = now + LINGER_SECONDS
            elif trick.kind is Kind.CROWD and trick.at == now:
                for number in range(CROWD_PODS):
                    space = f"crowd-{number % CROWD_NAMESPACES}"
                    name = self._add("crowd", space, 0, limit=_CROWD_LIMIT)
                    self._hold(name, _CROWD_LIMIT + trick.mebibytes * MIB, 1)
                    self.decoys[name] = now + trick.seconds

    def _take(self, who: int, active: list[Trick], now: int) -> None:
        """Have a thief hold what his tricks say, as far as the card has it."""
        name = self.thieves[who]
        if name not in self.world.pods:
            return
        kinds = {trick.kind for trick in active}
        amounts = [
            trick.mebibytes
            for trick in active
            if trick.kind is Kind.HOLD or (trick.kind is Kind.SAWTOOTH and trick.is_up(now))
        ]
        if any(trick.kind is Kind.CHURN and trick.begins(now) for trick in active):
            self.world.restart(name)
        turns = sum(
            (now - trick.at) // trick.period for trick in active if trick.kind is Kind.SWITCH
        )
        container = "debug" if Kind.EPHEMERAL in kinds else "main"
        wanted = PROMISED_TO_THIEF + max(amounts) * MIB if amounts else HELD_BY_IDLE_THIEF
        self._hold(name, wanted, turns % CARDS, container)

    def _hold(self, name: str, wanted: int, card: int, container: str = "main") -> None:
        """Let a pod hold so much on one card and nothing elsewhere."""
        holds = self.world.holds
        for key in [key for key in holds if key[0] == name]:
            del holds[key]
        held = min(wanted, T4_BYTES - self._used(card))
        self.world.hold(name, held, card=card, container=container)
        self.excess[name] = max(held - self._promised(self.world.pods[name]), 0)
        self.most_excess = max(self.most_excess, self.excess[name])

    def _stolen_from(self, card: int) -> int:
        """
        Return what the neighbours on a card were promised and cannot have, because of thieves.
        """
        lacking = taken = 0
        for (name, _, index), held in self.world.holds.items():
            if index != card:
                continue
            limit = INNOCENT[name][0] if name in INNOCENT else None
            if limit is not None:
                lacking += max(limit - (held or 0), 0)
            elif name not in INNOCENT:
                taken += self.excess[name]
        return min(max(lacking - (T4_BYTES - self._used(card)), 0), taken)

    def _used(self, card: int) -> int:
        return sum(held or 0 for (_, _, index), held in self.world.holds.items() if index == card)

    def _respawn(self, who: int) -> None:
        self.gone_at.pop(who, None)
        owner = controller(name=f"thief-{who}", uid=f"uid-thief-{who}")
        self.thieves[who] = self._add(f"thief-{who}", "thief", HELD_BY_IDLE_THIEF, controller=owner)

    def _add(
        self, kind: str, namespace: str, held: int, limit: int = PROMISED_TO_THIEF, **more: object
    ) -> str:
        self.made += 1
        name = f"{kind}-{self.made}"
        item = pod(name, "main", "debug", limit=limit, namespace=namespace, **more)
        self.world.add(item, 0)
        self._hold(name, held, 0)
        return name

    @staticmethod
    def _promised(item: PodOnNode) -> int:
        return next((limit.limit_bytes for limit in item.limits.values()), 0)
