"""
One scheme played against the running agent, and what it took, as the cards themselves say.

What no script can do, to go from card to card, is left to the deciding half.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from gpufence import names
from gpufence.quantity import MIB
from kube import KubeError, PatchType, core, group
from simulator.nvml.faults import Fault, NvmlCode
from tests.adversary.live import (
    FASTER,
    FAT_BYTES,
    FREE,
    POLICY,
    THIEF,
    LiveStage,
    pod_of,
    script_of,
)
from tests.adversary.stage import (
    INNOCENT,
    PROMISED_TO_THIEF,
    RESPAWN_SECONDS,
    Haul,
    Taker,
    allowed,
)
from tests.adversary.tricks import THIEVES, Kind, Scheme, Trick
from tests.support.agent.world import Act

LOOK_SECONDS: Final = 0.1
ASK_LOOKS: Final = 3
OUTAGE_SECONDS: Final = 10.0
FAT_PODS: Final = 8
SLOW_SECONDS: Final = 0.7
LABELS: Final = {f"l{number:05}": "v" * 60 for number in range(12_800)}
"""A pod with so many takes most of what the API server stores of one object."""
_UID = re.compile(r"pod([0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12})\.slice")
_LIST = "nvmlDeviceGetComputeRunningProcesses"
_SHIELDED = {"app": "shielded"}


@dataclass
class LivePlay:
    """`second` of the scheme is a fifteenth of one of the clock; all else is in the clock's."""

    stage: LiveStage
    scheme: Scheme
    seconds: int
    known: dict[str, str] = field(default_factory=dict)
    thieves: dict[int, str] = field(default_factory=dict)
    gone_at: dict[int, float] = field(default_factory=dict)
    excess: dict[str, int] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    false: list[Act] = field(default_factory=list)
    sent: set[tuple[Trick, int]] = field(default_factory=set)
    running: dict[Kind, ExitStack] = field(default_factory=dict)
    stolen: float = 0.0
    seen: float = 0.0
    most_excess: int = 0
    evictions: int = 0
    made: int = 0
    impaired_until: float = 0.0

    def run(self) -> Haul:
        """Play it to its end, then take the tenant's pods away."""
        began = before = time.monotonic()
        innocent = {name: self.stage.uids(f"of-{name}") for name in INNOCENT}
        looks = 0
        while (now := time.monotonic()) - began < self.seconds / FASTER:
            second = int((now - began) * FASTER)
            self._befall(second, now)
            if not looks % ASK_LOOKS and Kind.AWAY not in self.running:
                with suppress(KubeError):
                    self._come_and_go(second, now)
                    self._hold_to_truth(second, innocent)
            self._measure(now, now - before)
            before, looks = now, looks + 1
            time.sleep(max(LOOK_SECONDS - (time.monotonic() - now), 0.0))
        for kind in sorted(self.running, key=lambda kind: kind is not Kind.AWAY):
            self.running[kind].close()
        for name in self.stage.uids(THIEF):
            self.stage.remove(THIEF, name)
        taker = Taker(self.most_excess, self.evictions, THIEVES)
        return Haul(
            stolen=round(self.stolen),
            allowed=allowed(POLICY, [taker], self.seen),
            seconds=round(self.seen),
            evictions=self.evictions,
            false=tuple(self.false),
        )

    def _befall(self, second: int, now: float) -> None:
        """Begin and end what befalls the node, and note for how long the agent may not act."""
        active = {trick.kind for trick in self.scheme if trick.is_on(second)}
        if any(trick.kind is Kind.RESTART and trick.begins(second) for trick in self.scheme):
            self.stage.agent.kill()
            self.stage.agent.start()
            self._impaired(now, POLICY.start_pause_seconds + OUTAGE_SECONDS)
        for kind, begin in _EVENTS.items():
            if Kind.AWAY in self.running and kind is not Kind.AWAY:
                continue  # it begins and ends when there is somebody to ask
            if kind in active and kind not in self.running:
                self.running[kind] = ExitStack()
                self.running[kind].enter_context(begin(self.stage))
            elif kind not in active and kind in self.running:
                self.running.pop(kind).close()
                self._impaired(now, OUTAGE_SECONDS if kind is Kind.AWAY else 0.0)
            if kind in active and kind.befalls:
                self._impaired(now, 0.0)

    def _impaired(self, now: float, seconds: float) -> None:
        rest = seconds + POLICY.gap_seconds + POLICY.grace_seconds + POLICY.hold_seconds
        self.impaired_until = max(self.impaired_until, now + rest)

    def _come_and_go(self, second: int, now: float) -> None:
        """Make the pods again that went, a while after, and decoys that end slowly."""
        stage, living = self.stage, self.stage.uids(THIEF)
        for who in range(THIEVES):
            name = self.thieves.get(who, "")
            if name in living:
                continue
            if name and who not in self.gone_at:
                self._count(name, second)
                self.gone_at[who] = now
            if now >= self.gone_at.get(who, 0.0) + RESPAWN_SECONDS / FASTER:
                self.gone_at.pop(who, None)
                script = script_of(self.scheme, who, second, self.seconds)
                self.thieves[who] = self._create(f"thief-{who}", script)
        for trick in self.scheme:
            turn = (second - trick.at) // trick.period
            if trick.kind is Kind.DECOYS and trick.is_on(second) and (trick, turn) not in self.sent:
                self.sent.add((trick, turn))
                size = min(trick.mebibytes, 900) * MIB
                name = self._create("decoy", f"hold {size}", "--on-term", "ignore")
                stage.remove(THIEF, name, grace=POLICY.eviction_grace_seconds)

    def _create(self, kind: str, script: str, *options: str) -> str:
        self.made += 1
        name = f"{kind}-{self.made}"
        who = f"{THIEF}-{kind}"
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": who,
            "uid": f"00000000-0000-4000-8000-{sum(who.encode()):012}",
            "controller": True,
        }
        lingers = any(trick.kind is Kind.LINGER for trick in self.scheme)
        options = (*options, "--on-term", "ignore") if lingers and not options else options
        manifest = pod_of(
            name, PROMISED_TO_THIEF, script, *options, labels=_SHIELDED, ownerReferences=[owner]
        )
        if any(trick.kind is Kind.WORDS for trick in self.scheme):
            manifest["metadata"]["annotations"][names.KAI_FRACTION] = "0.9"
        self.known[self.stage.create(THIEF, manifest)] = name
        if any(trick.kind is Kind.LABELS for trick in self.scheme):
            with suppress(KubeError):
                path = core("namespaces", THIEF, "pods", name)
                self.stage.client.patch(path, {"metadata": {"labels": LABELS}}, PatchType.MERGE)
        return name

    def _count(self, name: str, second: int) -> None:
        """Note an eviction; one of a pod that never was over its limit is a false one."""
        if self.excess.get(name, 0) <= POLICY.report_margin_bytes:
            self.false.append(Act(second, name))
        self.evictions += 1

    def _hold_to_truth(self, second: int, innocent: Mapping[str, Mapping[str, str]]) -> None:
        for name, uids in innocent.items():
            if self.stage.uids(f"of-{name}") != uids:
                self.false.append(Act(second, name))

    def _measure(self, now: float, seconds: float) -> None:
        """Ask each card who holds what, and add up what the innocent lack because of the tenant."""
        present: dict[int, str] = {}
        for card in self.stage.node.state.cards:
            held: dict[str, int] = {}
            for use in card.uses:
                uid = self.owners.get(use.pid) or self._owner(use.pid)
                present[use.pid] = uid
                held[uid] = held.get(uid, 0) + use.memory
            taken = 0
            for uid, used in held.items():
                name = self.known.get(uid)
                if name is not None:
                    excess = max(used - PROMISED_TO_THIEF, 0)
                    self.excess[name] = max(self.excess.get(name, 0), excess)
                    self.most_excess = max(self.most_excess, excess)
                    taken += excess
            if now >= self.impaired_until and card.uuid == self.stage.node.state.cards[0].uuid:
                promised = sum(limit or 0 for limit, _ in INNOCENT.values())
                within = sum(min(limit, held_) for limit, held_ in INNOCENT.values() if limit)
                self.stolen += min(max(promised - within - card.room.free, 0), taken) * seconds
                self.seen += seconds
        self.owners = {pid: uid for pid, uid in present.items() if uid}

    def _owner(self, pid: int) -> str:
        with suppress(OSError):
            path = self.stage.node.proc_root / str(pid) / "cgroup"
            found = _UID.search(path.read_text(encoding="utf-8"))
            return "" if found is None else found[1].replace("_", "-")
        return ""


@contextmanager
def _shield(stage: LiveStage) -> Iterator[None]:
    """Let a disruption budget allow nobody of the tenant's to go."""
    path = group("policy/v1", "namespaces", THIEF, "poddisruptionbudgets")
    budget = {"minAvailable": 1, "selector": {"matchLabels": _SHIELDED}}
    made = stage.client.post(path, {"metadata": {"name": "nobody"}, "spec": budget})
    status = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 0}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    stage.client.patch(f"{path}/nobody/status", {"status": status | counts}, PatchType.MERGE)
    yield
    stage.client.delete(f"{path}/nobody")


@contextmanager
def _fat(stage: LiveStage) -> Iterator[None]:
    """Put pods on the node that are as large as the API server takes, and ask for no GPU."""
    for number in range(FAT_PODS):
        manifest = pod_of(f"fat-{number}", None, "wait 1000m", "<" * FAT_BYTES)
        stage.create(FREE, manifest)
    yield
    for number in range(FAT_PODS):
        stage.remove(FREE, f"fat-{number}")


@contextmanager
def _blind(stage: LiveStage) -> Iterator[None]:
    number = stage.node.state.faults.add(Fault.code(NvmlCode.NO_PERMISSION, _LIST))
    yield
    stage.node.state.faults.remove(number)


@contextmanager
def _switched_off(stage: LiveStage) -> Iterator[None]:
    stage.site.set_policy("observe")
    yield
    stage.site.set_policy("evict")


@contextmanager
def _away(stage: LiveStage) -> Iterator[None]:
    stage.plane.stop_api_server()
    yield
    stage.plane.start_api_server()


@contextmanager
def _slow(stage: LiveStage) -> Iterator[None]:
    """Let the driver take longer to list both cards than three of the agent's intervals."""
    faults = stage.node.state.faults
    numbers = [faults.add(Fault.delay(SLOW_SECONDS, _LIST, card)) for card in range(2)]
    yield
    for number in numbers:
        faults.remove(number)


_EVENTS: Final[Mapping[Kind, Callable[[LiveStage], AbstractContextManager[None]]]] = {
    Kind.AWAY: _away,
    Kind.SHIELD: _shield,
    Kind.FAT: _fat,
    Kind.BLIND: _blind,
    Kind.SWITCHED_OFF: _switched_off,
    Kind.SLOW: _slow,
}
