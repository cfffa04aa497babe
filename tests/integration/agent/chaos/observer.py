"""
Looks at the cards themselves and at the API server's pods, and writes down what truly happens.

Whose a process is it knows from the node's own folder of processes; it asks neither NVML nor the
agent.
"""

import re
import threading
import time
from contextlib import suppress
from datetime import datetime
from typing import Self

from kube import Client, JsonObject, KubeError, core
from simulator.node import SimulatedNode
from simulator.nvml.card import SimulatedCard
from tests.integration.agent.chaos.card import Moment, Words, stand_of
from tests.integration.agent.chaos.truth import History, Life, Span

LOOK_SECONDS = 0.1
FOG_SECONDS = 0.35
SUSPEND_NAMESPACES = 3
ASK_SECONDS = 0.3
JOIN_SECONDS = 20.0
_UID = re.compile(r"pod([0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12})\.slice")


class Observer:
    """Looks ten times a second for as long as its block lasts; times are `time.monotonic()`."""

    def __init__(self, node: SimulatedNode, client: Client, lend_after: float) -> None:
        self.history = History()
        self._lend_after = lend_after
        self._fog_at = time.monotonic()
        self._doubted_at: dict[int | None, float] = {}
        self._node = node
        self._client = client
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._owners: dict[int, str] = {}
        self._terminating: set[str] = set()
        self._threads = [
            threading.Thread(target=work, name=f"observer {work.__name__}", daemon=True)
            for work in (self._watch, self._ask)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)

    def meet(self, uid: str, words: Words) -> None:
        """Learn of a pod that was just made."""
        with self._lock:
            self.history.lives[uid] = Life(uid, words, made_at=time.monotonic())

    def doubt(self, until: float, card: int | None = None) -> None:
        """Learn that until then the agent may not see what pods do, there or on all cards."""
        self._doubted_at[card] = until

    def part(self, uid: str) -> bool:
        """Learn that a pod is about to be deleted by its owner; False if it is going already."""
        with self._lock:
            life = self.history.lives[uid]
            if life.evicted is None and life.left_at is None:
                life.left_at = time.monotonic()
                return True
            return False

    def _ask(self) -> None:
        """Ask the API server for all pods, several times a second, whenever it answers."""
        before = time.monotonic()
        query = {"fieldSelector": f"spec.nodeName={self._node.name}"}
        while not self._stop.wait(ASK_SECONDS):
            asked = time.monotonic()
            with suppress(KubeError):
                items = self._client.list(core("pods"), query).items
                self._compare(items, Span(before, time.monotonic()))
                before = asked

    def _compare(self, items: list[JsonObject], since: Span) -> None:
        """Find out who has begun to go, or is gone, since the question before."""
        there = {str(item["metadata"]["uid"]): item["metadata"] for item in items}
        going = {uid: data for uid, data in there.items() if data.get("deletionTimestamp")}
        with self._lock:
            self._terminating = set(going)
            for uid, life in self.history.lives.items():
                if life.left_at is not None or life.evicted is not None:
                    continue
                if uid in going:
                    life.evicted = _asked_at(going[uid], since)
                elif uid not in there and life.made_at < since.since:
                    life.evicted = since

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            if now - before > FOG_SECONDS:
                self.history.fog.append(Span(before, now))
                self._fog_at = now
            with self._lock:
                self._look(Span(before, now))
            before = now

    def _look(self, seen: Span) -> None:
        present: dict[int, str] = {}
        most: dict[str, int] = {}
        lives = self.history.lives
        people = {
            uid: life.words
            for uid, life in lives.items()
            if life.left_at is None and life.evicted is None
        }
        looks = [(card, self._held(card, present)) for card in self._node.state.cards]
        asleep, awake = self._moods([held for _, held in looks], seen.until)
        for place, (card, held) in enumerate(looks):
            room, total = card.room, card.memory - card.reserved
            nobodys = max(total - room.free - sum(held.values()), 0)
            moment = Moment(held, room.free, total, nobodys, self._terminating)
            stand = stand_of(moment, place, people, asleep, awake)
            for uid, used in held.items():
                most[uid] = max(most.get(uid, 0), used)
                if uid in lives:
                    lives[uid].saw(place, used, seen, stand)
            if any(uid in self._terminating for uid in held):
                self.history.left(place, seen)
        self._owners = present
        if self._too_many(most):
            self.history.mistrusted(seen)

    def _moods(self, cards: list[dict[str, int]], now: float) -> tuple[set[str], set[str]]:
        """Name the pods that are surely idle, and those that surely are not."""
        lives = self.history.lives
        for uid, life in lives.items():
            life.moved(sum(held.get(uid, 0) for held in cards), now)
        after = self._lend_after
        starts = [start.ready_at for start in self.history.starts]
        always = max([self._fog_at, self._doubted_at.get(None, 0.0), *starts])
        doubted = dict.fromkeys(lives, always)
        for place, held in enumerate(cards):
            for uid in held.keys() & lives.keys():
                doubted[uid] = max(doubted[uid], self._doubted_at.get(place, 0.0))
        return (
            {uid for uid, life in lives.items() if life.sleeps(now, after, doubted[uid])},
            {uid for uid, life in lives.items() if life.wakes(now, after)},
        )

    def _too_many(self, most: dict[str, int]) -> bool:
        """
        Tell whether more than half of those who could go may be over their limits, in as many
        namespaces as that takes; all of them have the same unit.
        """
        lives = {uid: self.history.lives[uid].words for uid in most if uid in self.history.lives}
        able = {
            uid: words
            for uid, words in lives.items()
            if words.fenced and uid not in self._terminating
        }
        over = [words for uid, words in able.items() if most[uid] > words.thresholds[0]]
        spread = len({words.namespace for words in over})
        return spread >= SUSPEND_NAMESPACES and 2 * len(over) > len(able)

    def _held(self, card: SimulatedCard, present: dict[int, str]) -> dict[str, int]:
        """Add up what each pod's processes hold of a card."""
        held: dict[str, int] = {}
        for use in card.uses:
            uid = present.get(use.pid) or self._owners.get(use.pid) or self._owner(use.pid)
            if uid:
                present[use.pid] = uid
                held[uid] = held.get(uid, 0) + use.memory
        return held

    def _owner(self, pid: int) -> str:
        with suppress(OSError):
            found = _UID.search((self._node.proc_root / str(pid) / "cgroup").read_text())
            return "" if found is None else found[1].replace("_", "-")
        return ""


def _asked_at(metadata: JsonObject, since: Span) -> Span:
    """Say when a deletion was asked for, which the API server writes down in whole seconds."""
    ends = datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
    ago = time.time() - ends + float(metadata.get("deletionGracePeriodSeconds") or 0)
    asked = time.monotonic() - ago
    return Span(max(since.since, asked), max(min(since.until, asked + 1.0), since.since))
