"""PURE. What comes to the node and what goes wrong, drawn before anything begins from one seed."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gpufence import names
from gpufence.quantity import GIB, MIB
from tests.integration.agent.chaos.card import Words

EVICTING: Final = ("chaos-evict-a", "chaos-evict-b", "chaos-evict-c")
CAPPING: Final = "chaos-cap"
FREE: Final = "chaos-free"
MODES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(EVICTING, "evict"),
    CAPPING: "cap",
    FREE: None,
}
SHIELD: Final = {"app": "web"}
"""The labels of pods that a disruption budget covers, which allows nobody to go."""

OWNERS: Final = (
    *(("batch/v1", "Job", f"job-{number}") for number in range(8)),
    *(("apps/v1", "ReplicaSet", f"set-{number}") for number in range(24)),
)
"""Who makes most of the pods; what an agent remembers of them stops growing after a while."""

_CROWD_PACE_SECONDS = 0.3
_PACE_SECONDS = 1.6
_FIRST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Person:
    """One pod that comes at a second, and that its owner takes away after some more."""

    at: float
    stays: float
    namespace: str
    words: Words
    manifest: dict[str, Any]


def population(dice: random.Random, seconds: float) -> list[Person]:
    """
    Draw everybody who comes within that time.

    A crowd of honest ones comes first and stays for long: where more than half of all pods were
    over their limits nobody would be evicted, rightly, and nothing be proved. One on each card is
    there to be borrowed of, and one keeps what it borrows of the second, which is at work.
    """
    people: list[Person] = []
    at = 0.0
    while at < seconds - 2:
        settles = len(people) < len(_SETTLERS)
        kind = _SETTLERS[len(people)] if settles else dice.choices(tuple(_SCRIPTS), _WEIGHTS)[0]
        stays = dice.uniform(0.5, 1.0) * seconds if settles else dice.uniform(10, 25)
        people.append(_person(dice, at, stays, f"{kind}-{len(people)}"))
        at += dice.uniform(0.4, 1.6) * (_CROWD_PACE_SECONDS if settles else _PACE_SECONDS)
    return people


def _person(dice: random.Random, at: float, stays: float, name: str) -> Person:
    kind = name.partition("-")[0]
    script = _SCRIPTS[kind]
    namespace = dice.choices([*EVICTING, CAPPING, FREE], [6, 6, 4, 2, 2])[0]
    units = LENT_UNITS if kind in _LENDERS else dice.choice((1, 2))
    place = int(name.rpartition("-")[2])
    settler = place < len(_PLACES)
    declared = dice.random() > 0.07 or settler
    most = MUCH_UNITS if settler else dice.randint(4, 9)
    burst = most if kind in _BORROWERS and declared else units
    injected = dice.random() > 0.1
    shielded = dice.random() < 0.08 and not settler
    noted = dice.randrange(3) if declared and dice.random() < 0.3 else None
    if settler:
        noted, namespace = _PLACES[place], EVICTING[_PLACES[place]]
    limit = burst * GIB
    words = Words(
        name=name,
        limit=limit,
        request=units * GIB if burst > units else None,
        works=kind == "working",
        namespace=namespace,
        watched=namespace != FREE and declared,
        fenced=namespace in EVICTING and declared,
        injected=injected,
        shielded=shielded,
        card=noted,
    )
    args = [script(dice, limit // MIB), "--on-oom", "wait"]
    if dice.random() < 0.1:
        args += ["--on-term", "ignore"]
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": words.name,
            "annotations": {
                **({names.INJECTED: "nothing"} if injected else {}),
                **({names.BURST: f"{burst}Gi"} if burst > units else {}),
                **({} if noted is None else {names.GPUSHARE_CARD_INDEX: str(noted)}),
            },
            "labels": SHIELD if shielded else {},
        },
        "spec": {
            "terminationGracePeriodSeconds": dice.choice((1, 30, 1_000_000_000)),
            "containers": [
                {
                    "name": "main",
                    "image": "gpufence/workload",
                    "args": args,
                    "resources": {
                        "limits": {names.GPUSHARE_MEMORY: str(units)} if declared else {}
                    },
                }
            ],
        },
    }
    manifest["metadata"] |= _owned(dice)
    return Person(at, stays, namespace, words, manifest)


def _owned(dice: random.Random) -> dict[str, Any]:
    if dice.random() < 0.2:
        return {}
    number = dice.randrange(len(OWNERS))
    version, kind, name = OWNERS[number]
    uid = f"00000000-0000-4000-8000-{number:012}"
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"ownerReferences": [owner]}


def _honest(dice: random.Random, limit: int) -> str:
    """Hold more and less within the limit."""
    steps = [
        f"after {dice.uniform(0.5, 4):.1f}s hold {dice.randint(limit // 8, limit - 20)}Mi"
        for _ in range(6)
    ]
    return "; ".join(["hold 100Mi", *steps])


def _tolerated(dice: random.Random, limit: int) -> str:
    """Hold less above the limit than an eviction needs."""
    return f"hold {limit // 2}Mi; after 1s hold {limit + dice.randint(80, 220)}Mi"


def _peaking(dice: random.Random, limit: int) -> str:
    """Be far over the limit for a moment, now and then."""
    low = limit // 2
    peak = f"hold {limit + dice.randint(400, 900)}Mi; after 300ms hold {low}Mi"
    return f"hold {low}Mi; " + "; ".join([f"after {dice.uniform(5, 7):.1f}s {peak}"] * 4)


def _warming_up(dice: random.Random, limit: int) -> str:
    """Be far over the limit inside the grace."""
    return f"hold {limit + dice.randint(300, 900)}Mi; after 1200ms hold {limit // 2}Mi"


def _offending(dice: random.Random, limit: int) -> str:
    """Go over the limit after a while, and stay there."""
    after = dice.uniform(_FIRST_SECONDS, 9)
    return f"hold {limit // 2}Mi; after {after:.1f}s hold {limit + dice.randint(300, 1000)}Mi"


def _leaking(dice: random.Random, limit: int) -> str:
    return f"hold {limit // 2}Mi; grow {dice.randint(150, 600)}Mi/s to {limit + 700}Mi"


def _born_greedy(dice: random.Random, limit: int) -> str:
    return f"hold {limit + dice.randint(300, 1000)}Mi"


def _forking(dice: random.Random, limit: int) -> str:
    """Exceed the limit by several processes, none of which does alone."""
    workers = dice.randint(1, 3)
    part = (limit + dice.randint(350, 700)) // (workers + 1)
    return f"hold {part}Mi; after {dice.uniform(2, 6):.1f}s fork {workers}"


def _crashing(dice: random.Random, limit: int) -> str:
    """Crash and come again, as containers do."""
    return f"hold {limit // 2}Mi; after {dice.uniform(2, 6):.1f}s crash"


def _crashing_over(dice: random.Random, limit: int) -> str:
    """Crash while over the limit: each process is a new one."""
    over = limit + dice.randint(300, 600)
    return f"hold {limit // 2}Mi; after 2s hold {over}Mi; after {dice.uniform(1, 8):.1f}s crash"


def _bursting(dice: random.Random, limit: int) -> str:
    """Borrow nearly all it may, for long or for a moment, and more than once."""
    lasts = dice.choice((dice.uniform(1, 5), 10.0))
    much = f"hold {limit - dice.randint(30, 300)}Mi; after {lasts:.1f}s hold 700Mi"
    return "hold 700Mi; " + "; ".join([f"after {dice.uniform(1, 4):.1f}s {much}"] * 3)


def _beyond(dice: random.Random, limit: int) -> str:
    """Borrow, and then take more than it may."""
    after = dice.uniform(_FIRST_SECONDS, 9)
    return f"hold {limit - 200}Mi; after {after:.1f}s hold {limit + dice.randint(300, 1000)}Mi"


def _keeping(dice: random.Random, limit: int) -> str:
    """Borrow nearly all it may, and never give back."""
    return f"hold 700Mi; after {dice.uniform(8, 12):.1f}s hold {limit - 100}Mi"


def _lending(dice: random.Random, limit: int) -> str:
    """Be idle for a while, and come back for what it is promised."""
    awake = f"hold {limit - 100}Mi; after {dice.uniform(1, 5):.1f}s hold 200Mi"
    return "hold 200Mi; " + "; ".join([f"after {dice.uniform(5, 15):.1f}s {awake}"] * 8)


def _lazy(_: random.Random, limit: int) -> str:
    """Be idle for ever."""
    return f"hold {limit // 16}Mi"


def _working(dice: random.Random, limit: int) -> str:
    """Hold little and be busy all the time, so that nothing is to be borrowed of it."""
    more = f"hold {limit - dice.randint(100, 2000)}Mi; after {dice.uniform(1, 5):.1f}s hold 300Mi"
    return "hold 300Mi; busy 40; " + "; ".join([f"after {dice.uniform(5, 20):.1f}s {more}"] * 8)


_SCRIPTS: Final[Mapping[str, Callable[[random.Random, int], str]]] = {
    "honest": _honest,
    "tolerated": _tolerated,
    "peaking": _peaking,
    "warming": _warming_up,
    "crashing": _crashing,
    "offending": _offending,
    "leaking": _leaking,
    "greedy": _born_greedy,
    "forking": _forking,
    "relapsing": _crashing_over,
    "bursting": _bursting,
    "beyond": _beyond,
    "keeping": _keeping,
    "lending": _lending,
    "working": _working,
    "lazy": _lazy,
}
_WEIGHTS: Final = (4, 1, 2, 2, 2, 3, 2, 3, 2, 1, 5, 1, 1, 1, 1, 1)
_BORROWERS: Final = {"bursting", "beyond", "keeping"}
_LENDERS: Final = {"lending", "working", "lazy"}
_SETTLERS: Final = ("lazy", "working", "lending", "keeping", *["honest"] * 8)
_PLACES: Final = (0, 1, 2, 1)
"""On which card the first settlers are."""
LENT_UNITS: Final = 5
MUCH_UNITS: Final = 10


class Trouble(StrEnum):
    """What can go wrong."""

    CHILD_KILLED = "the child that reads NVML is killed"
    CHILD_STOPPED = "the child stops, as if a call never returned"
    LIBRARY_CRASHES = "a call of NVML crashes its caller"
    LIBRARY_HANGS = "a call of NVML never returns"
    DRIVER_UPGRADED = "the driver is replaced"
    CARD_LOST = "a card falls off the bus"
    LIST_REFUSED = "a card's processes may not be listed"
    LIST_UNKNOWN = "a card's processes are listed without what they hold"
    LIST_ZERO = "a card's processes are listed as holding nothing"
    LIST_GARBLED = "a card's list is nonsense"
    SLOW = "every call of NVML takes its time"
    CARD_FULL = "a card runs short of memory that no process shows"
    OUTAGE = "the API server is away"
    KILL_SWITCH = "the operator lets nobody be evicted for a while"
    POLICY_GONE = "the operator's word is not there"
    AGENT_KILLED = "the agent is killed and started again"


OF_CHILD: Final = frozenset(
    {
        Trouble.CHILD_KILLED,
        Trouble.CHILD_STOPPED,
        Trouble.LIBRARY_CRASHES,
        Trouble.LIBRARY_HANGS,
        Trouble.DRIVER_UPGRADED,
    }
)
"""The agent waits longer for each new child in a row, so these keep a distance."""

OF_CARD: Final = (
    Trouble.CARD_LOST,
    Trouble.LIST_REFUSED,
    Trouble.LIST_UNKNOWN,
    Trouble.LIST_ZERO,
    Trouble.LIST_GARBLED,
)
_CHILD_SECONDS = 20.0
_BREAK_SECONDS = (8.0, 25.0)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One trouble from a second on, for some seconds; `card` is where it hits if it hits one."""

    at: float
    trouble: Trouble
    seconds: float
    card: int


def short_program(dice: random.Random, cards: int) -> list[Disturbance]:
    """Draw the weather of a little more than a minute: one of each sort, clear sky in between."""
    program = (
        (5.0, dice.choice([Trouble.CHILD_KILLED, Trouble.LIBRARY_CRASHES]), 0.0),
        (10.0, dice.choice(OF_CARD), 3.0),
        (17.0, Trouble.CARD_FULL, 6.0),
        (26.0, dice.choice([Trouble.KILL_SWITCH, Trouble.POLICY_GONE]), 3.0),
        (33.0, Trouble.AGENT_KILLED, 0.0),
        (45.0, dice.choice([Trouble.CHILD_STOPPED, Trouble.DRIVER_UPGRADED]), 2.0),
        (53.0, Trouble.OUTAGE, 4.0),
        (65.0, Trouble.SLOW, 3.0),
    )
    return [Disturbance(*item, dice.randrange(cards)) for item in program]


def long_program(dice: random.Random, cards: int, seconds: float) -> list[Disturbance]:
    """Draw as much weather as there is time for, in no order."""
    program = []
    at, last_of_child = dice.uniform(*_BREAK_SECONDS), 0.0
    while at < seconds - 30:
        trouble = dice.choice(tuple(Trouble))
        if trouble in OF_CHILD and at - last_of_child < _CHILD_SECONDS:
            continue
        if trouble in OF_CHILD:
            last_of_child = at
        lasts = dice.uniform(1, 6)
        program.append(Disturbance(at, trouble, lasts, dice.randrange(cards)))
        at += lasts + dice.uniform(*_BREAK_SECONDS)
    return program
