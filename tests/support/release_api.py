"""
An API server as far as a release goes, and leaders that act on it as the controller does: note,
replicas, note, each only on the version that was seen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controller.decide import decide, last_look, refused, released, why_not
from controller.model import (
    Act,
    ClusterState,
    OwnerKey,
    OwnerState,
    ReleaseDecision,
    ReleaseMemory,
    Step,
)
from controller.rules import ReleaseRules
from gpufence.idle import ReleaseNote, read_note, write_note
from gpufence.snapshot import Snapshot


class ConflictError(Exception):
    """Raised where somebody else has changed the owner since."""


@dataclass
class Stored:
    uid: str
    version: int
    replicas: int
    note: str = ""


@dataclass(frozen=True)
class Scaling:
    key: OwnerKey
    before: int
    after: int
    note: str
    by: str


@dataclass
class Api:
    """Owners with their versions, and all that was done to their replicas."""

    owners: dict[OwnerKey, Stored] = field(default_factory=dict)
    scalings: list[Scaling] = field(default_factory=list)

    def scale(self, key: OwnerKey, uid: str, version: str, replicas: int) -> str:
        stored = self._checked(key, uid, version)
        self._log(key, replicas, "controller")
        stored.replicas = replicas
        return self._changed(stored)

    def annotate(self, key: OwnerKey, uid: str, version: str, note: ReleaseNote | None) -> str:
        stored = self._checked(key, uid, version)
        stored.note = "" if note is None else write_note(note)
        return self._changed(stored)

    def scale_by_hand(self, key: OwnerKey, replicas: int) -> None:
        stored = self.owners[key]
        if stored.replicas != replicas:
            self._log(key, replicas, "somebody")
            stored.replicas = replicas
            self._changed(stored)

    def seen(self, owner: OwnerState) -> OwnerState:
        """Return an owner as it is now."""
        stored = self.owners[owner.key]
        note = read_note(stored.note) if stored.note else None
        return owner._replace(
            uid=stored.uid, version=str(stored.version), replicas=stored.replicas, note=note
        )

    def _checked(self, key: OwnerKey, uid: str, version: str) -> Stored:
        stored = self.owners[key]
        if (stored.uid, str(stored.version)) != (uid, version):
            raise ConflictError
        return stored

    def _changed(self, stored: Stored) -> str:
        stored.version += 1
        return str(stored.version)

    def _log(self, key: OwnerKey, replicas: int, by: str) -> None:
        stored = self.owners[key]
        self.scalings.append(Scaling(key, stored.replicas, replicas, stored.note, by))


@dataclass
class Leader:
    """One controller that believes it leads."""

    api: Api
    rules: ReleaseRules = field(default_factory=ReleaseRules)
    memory: ReleaseMemory = field(default_factory=ReleaseMemory)
    decision: ReleaseDecision | None = None

    def decide(self, world: ClusterState) -> tuple[Act, ...]:
        self.decision = decide(world, self.memory, self.rules)
        self.memory = self.decision.memory
        return self.decision.acts

    def steps(
        self, act: Act, world: ClusterState, snapshots: Mapping[str, Snapshot | None] | None
    ) -> Iterator[str]:
        """
        Carry an act out; after each call of the API there may be an end to it. Without snapshots
        the agents agree with everything.
        """
        if act.step is Step.RELEASE and snapshots is not None:
            look = last_look(world.owners[act.key], snapshots)
            against = why_not(look, act.threshold_seconds)
            if against:
                self.memory = refused(self.memory, act.key, against, world.now)
                return
        if act.step is Step.ANNOUNCE:
            return
        try:
            version = self.api.annotate(act.key, act.uid, act.version, act.note)
            yield "noted"
            if act.replicas is not None:
                version = self.api.scale(act.key, act.uid, version, act.replicas)
                if act.step is Step.RELEASE:
                    self.memory = released(self.memory, act.key, world.now)
                yield "scaled"
                self.api.annotate(act.key, act.uid, version, act.done)
                yield "done"
        except ConflictError:
            return

    def forget(self) -> None:
        """Begin as a new leader does."""
        self.memory = ReleaseMemory()

    def act(
        self, world: ClusterState, snapshots: Mapping[str, Snapshot | None] | None = None
    ) -> list[Act]:
        """Make a whole pass; return the acts that came to their end."""
        finished = []
        for act in self.decide(world):
            done = list(self.steps(act, world, snapshots))
            if act.step is Step.ANNOUNCE or done:
                finished.append(act)
        return finished
