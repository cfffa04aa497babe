"""
A scheme played against the agent's deciding half, and what it took from fenced neighbours.

Two cards. A tenant's three pods, promised little, stand beside a neighbour who uses a third of what
he was promised, one a little over his limit, which is tolerated, and one without any fence.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from agent.model.decision import Answer
from agent.model.memory import Memory
from agent.model.pod import PodLimit, PodOnNode
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.adversary.bound import most_kept, most_taken
from tests.adversary.tricks import THIEVES, Kind, Scheme, Trick
from tests.support.agent.builders import CARDS as CARDS_OF_NODE
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
SLOWEST = 10
STRANGER = 9
CROWD_PODS = 9
LONG_IDLE = 3600.0
DECIDED_SECONDS = 3  # a decision may be that much older than its act
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
    stage.world.each(lambda _, second: stage.second(second)).run(seconds)
    stage.note_acts()
    return Haul(
        stolen=stage.stolen,
        allowed=allowed(policy, stage.takers.values(), stage.seen, stage.slowest),
        seconds=stage.seen,
        evictions=stage.evictions,
        false=tuple(stage.false),
    )


class Taker(NamedTuple):
    """
    Pods of one owner: how many at once and in all, and the most that one held over its limit, or
    over its request where it `borrows`.
    """

    excess_bytes: int = 0
    gone: int = 0
    pods: int = 1
    borrows: bool = False


def allowed(
    policy: EvictionPolicy, takers: Iterable[Taker], seconds: float, slow_seconds: float = 0.0
) -> int:
    """Return the most that a policy lets the tenant's pods take: of each its largest excess."""
    together = 0.0
    for excess, gone, pods, borrows in takers:
        stays = partial(
            most_kept if borrows else most_taken,
            policy,
            excess,
            PROMISED_TO_THIEF,
            seconds=seconds,
            slow_seconds=slow_seconds,
        )
        together += min(stays(gone=gone) + (pods - 1) * stays(), pods * excess * seconds)
    return round(together)


@dataclass
class _Stage:
    scheme: Scheme
    policy: EvictionPolicy
    world: World = field(init=False)
    stolen: int = 0
    seen: int = 0
    evictions: int = 0
    takers: dict[str, Taker] = field(default_factory=dict)
    slowest: int = 0
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
        self.borrowed: dict[str, int] = {}
        self.missed_at = -1
        self.shown: dict[str, int] = {}
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
            self._move(who, active, now)
        for who in range(THIEVES):
            self._take(who, [trick for trick in active if trick.who == who], now)
        self._weigh()
        if any(self._missed_on(card) for card in range(CARDS)):
            self.missed_at = now
        if now >= self.impaired_until:
            self.seen += 1
            self.stolen += sum(self._stolen_from(card) for card in range(CARDS))

    def note_acts(self) -> None:
        """Hold every act since the last look against the truth."""
        for act in self.world.acts[self.known_acts :]:
            excess, borrowed = self.excess.get(act.pod, 0), self.borrowed.get(act.pod, 0)
            missed = act.second - self.missed_at <= DECIDED_SECONDS + self.slowest
            if excess <= self.policy.report_margin_bytes or (excess <= borrowed and not missed):
                self.false.append(act)
            else:
                self.evictions += 1
                self._taker(act.pod, gone=1)
        self.known_acts = len(self.world.acts)

    def _befall(self, active: list[Trick], now: int) -> None:
        kinds = {trick.kind for trick in active}
        world = self.world
        world.answer = Answer.BLOCKED if Kind.SHIELD in kinds else Answer.ACCEPTED
        world.unlisted = set(range(CARDS)) if Kind.BLIND in kinds else set()
        slow = [trick.period for trick in active if trick.kind is Kind.SLOW]
        world.slow = min(max(slow, default=0), SLOWEST)
        self.slowest = max(self.slowest, world.slow)
        strangers = [trick.mebibytes for trick in active if trick.kind is Kind.STRANGER]
        little = min(max(strangers, default=0), 200) * MIB
        world.strangers = {STRANGER: (0, min(little, T4_BYTES - self._used(0)))} if little else {}
        world.reachable = Kind.AWAY not in kinds
        lull = any(trick.kind is Kind.LULL and trick.is_up(now) for trick in active)
        world.idle = {VICTIM: LONG_IDLE} if lull else {}
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
                self._taker(name, gone=1 if name in world.pods and self.excess[name] else 0)
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
        amounts += [trick.mebibytes + now - trick.at for trick in active if trick.kind is Kind.GROW]
        if any(trick.kind is Kind.CHURN and trick.begins(now) for trick in active):
            self.world.restart(name)
        turns = sum(
            (now - trick.at) // trick.period for trick in active if trick.kind is Kind.SWITCH
        )
        container = "debug" if Kind.EPHEMERAL in kinds else "main"
        wanted = PROMISED_TO_THIEF + max(amounts) * MIB if amounts else HELD_BY_IDLE_THIEF
        self._hold(name, wanted, turns % CARDS, container)
        if Kind.NAMELESS in kinds:
            other = "main" if container == "debug" else "debug"
            self.world.hold(name, None, card=turns % CARDS, container=other)

    def _move(self, who: int, active: list[Trick], now: int) -> None:
        """Set what a thief may hold in this second."""
        name = self.thieves[who]
        if name not in self.world.pods:
            return
        own = [trick for trick in active if trick.who == who]
        lower = [item.mebibytes for item in own if item.kind is Kind.MOVE and item.is_up(now)]
        limit = max(PROMISED_TO_THIEF - max(lower, default=0) * MIB, GIB // 4)
        unasked = any(item.kind is Kind.UNASKED for item in own)
        more = max((item.mebibytes for item in own if item.kind is Kind.BURST), default=0) * MIB
        part = PodLimit(limit + more, share_bytes=limit if more else 0)
        if unasked:
            part = PodLimit(1)
        if any(item.kind is Kind.CLAIM for item in active):
            whole = THIEVES * PROMISED_TO_THIEF
            part = PodLimit(whole, claims=(("claim/gpu", whole),))
        open_ = any(item.kind is Kind.OPEN and item.begins(now) for item in own)
        limits = {} if open_ else {item.uuid: part for item in CARDS_OF_NODE[:CARDS]}
        item = self.world.pods[name]
        if (item.limits, item.unasked) != (limits, unasked):
            self.world.change(name, limits=limits, unasked=unasked)

    def _weigh(self) -> None:
        """Note what each pod holds above its limit, as the next look will find it."""
        held: dict[tuple[str, int], int] = {}
        for (name, _, card), used in self.world.holds.items():
            held[name, card] = held.get((name, card), 0) + (used or 0)
        for (name, card), used in held.items():
            item = self.world.pods.get(name)
            limit = None if item is None else item.limits.get(CARDS_OF_NODE[card].uuid)
            if name in INNOCENT:
                continue
            if limit is None:
                self.excess[name] = 0
                continue
            may = limit.share_bytes or limit.limit_bytes
            self.borrowed[name] = limit.limit_bytes - may
            self._taker(name, borrows=bool(limit.share_bytes))
            if limit.claims:
                others = sum(
                    amount
                    for (other, there), amount in held.items()
                    if there == card and other != name and self._claims(other)
                )
                may = max(may // max(self._users(), 1), may - others)
            self.excess[name] = max(used - may, 0)
            self._taker(name, self.excess[name])
        for index in range(CARDS):
            listed = self.world.lists.get(index)
            if listed is None or self.world.now - listed.listed_at >= self.world.slow:
                self.shown |= {
                    name: self.excess.get(name, 0) for name, card in held if card == index
                }

    def _taker(self, name: str, excess: int = 0, gone: int = 0, *, borrows: bool = False) -> None:
        """Note what a pod did under the name of its owner."""
        kind = name.rpartition("-")[0]
        past = self.takers.get(kind, Taker(pods=1 if kind.startswith("thief") else CROWD_PODS))
        self.takers[kind] = Taker(
            max(past.excess_bytes, excess), past.gone + gone, past.pods, past.borrows or borrows
        )

    def _claims(self, name: str) -> bool:
        return any(limit.claims for limit in self.world.pods[name].limits.values())

    def _users(self) -> int:
        return sum(self._claims(name) for name in self.world.pods)

    def _hold(self, name: str, wanted: int, card: int, container: str = "main") -> None:
        """Let a pod hold so much on one card and nothing elsewhere."""
        holds = self.world.holds
        for key in [key for key in holds if key[0] == name]:
            del holds[key]
        held = min(wanted, T4_BYTES - self._used(card))
        self.world.hold(name, held, card=card, container=container)
        if name not in self.excess:
            self.excess[name] = max(held - self._promised(self.world.pods[name]), 0)

    def _stolen_from(self, card: int) -> int:
        """Return what thieves keep from neighbours on a card to whom it was promised."""
        lacking = taken = 0
        for (name, _, index), held in self.world.holds.items():
            if index != card:
                continue
            limit = INNOCENT[name][0] if name in INNOCENT else None
            if name in self.world.idle:
                continue
            if limit is not None:
                lacking += max(limit - (held or 0), 0)
            elif name not in INNOCENT:
                taken += min(self.excess[name], self.shown.get(name, 0))
        return min(max(lacking - (T4_BYTES - self._used(card)), 0), taken)

    def _missed_on(self, card: int) -> bool:
        """Return whether anybody may miss memory there that borrowers have to give back."""
        held: dict[str, int] = {}
        for (name, _, index), used in self.world.holds.items():
            if index == card and name in self.world.pods and name not in self.world.idle:
                held[name] = held.get(name, 0) + (used or 0)
        limits = ((self.world.pods[name].limits, used) for name, used in held.items())
        known = ((item.get(CARDS_OF_NODE[card].uuid), used) for item, used in limits)
        owed = sum(
            max((limit.share_bytes or limit.limit_bytes) - used, 0)
            for limit, used in known
            if limit
        )
        return T4_BYTES - self._used(card) < max(owed, self.policy.short_floor_bytes)

    def _used(self, card: int) -> int:
        strange = sum(held for index, held in self.world.strangers.values() if index == card)
        held = (held for (_, _, index), held in self.world.holds.items() if index == card)
        return strange + sum(item or 0 for item in held)

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
        return next((each.share_bytes or each.limit_bytes for each in item.limits.values()), 0)
