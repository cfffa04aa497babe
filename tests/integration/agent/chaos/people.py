"""
PURE. Who comes to the node, drawn before anything begins: the same seed, the same people.

Each lives by a script of its own. Those who only peak do so for less than the hold can be mistaken
for; those who offend do so until somebody stops them.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpufence import names
from gpufence.quantity import GIB, MIB
from tests.integration.agent.chaos.truth import Words

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

CROWD: Final = 8
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
    over their limits nobody would be evicted, rightly, and nothing be proved.
    """
    people: list[Person] = []
    at = 0.0
    while at < seconds - 2:
        settles = len(people) < CROWD
        kind = "honest" if settles else dice.choices(tuple(_SCRIPTS), _WEIGHTS)[0]
        stays = dice.uniform(0.5, 1.0) * seconds if settles else dice.uniform(10, 25)
        people.append(_person(dice, at, stays, f"{kind}-{len(people)}"))
        at += dice.uniform(0.4, 1.6) * (_CROWD_PACE_SECONDS if settles else _PACE_SECONDS)
    return people


def _person(dice: random.Random, at: float, stays: float, name: str) -> Person:
    kind = name.partition("-")[0]
    script = _SCRIPTS[kind]
    namespace = dice.choices([*EVICTING, CAPPING, FREE], [6, 6, 4, 2, 2])[0]
    units = dice.choice((1, 2))
    declared = dice.random() > 0.07
    injected = dice.random() > 0.1
    shielded = dice.random() < 0.08
    noted = dice.randrange(3) if declared and dice.random() < 0.3 else None
    limit = units * GIB
    words = Words(
        name=name,
        limit=limit,
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
}
_WEIGHTS: Final = (5, 1, 2, 2, 2, 3, 2, 3, 2, 1)
