"""Pods say by a condition what they hold, looked at once a second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from agent.concern import Concern
from agent.concerns.shown.condition import NOTHING_SAID, due, words_of
from gpufence.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.concern import Ground
    from agent.concerns.shown.condition import LastWord
    from agent.model.pod import PodCondition
    from agent.model.state import TickResult

_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """Whether pods say what they hold."""

    on: bool = field(
        default=True,
        metadata=setting(
            "GPUFENCE_MEMORY_CONDITION",
            "whether each pod with a limit says in condition `gpufence.io/GPUMemory` what it "
            "holds, for people who may read the pod and not ask its agent",
        ),
    )


class ShownConcern(Concern):
    """Where it is off, what was said before is taken back."""

    name = "shown"
    title = "Memory as pods say it"
    settings = ShownPolicy

    def __init__(self, policy: ShownPolicy) -> None:
        self._policy = policy
        self._said: Mapping[str, LastWord] = NOTHING_SAID
        self._said_at = 0.0
        self._due: Sequence[PodCondition] = ()

    @classmethod
    def on(cls, ground: Ground, settings: ShownPolicy) -> Self:
        del ground
        return cls(settings)

    def look(self, tick: TickResult) -> None:
        now = tick.decision.at
        if now - self._said_at < _PAUSE_SECONDS:
            return
        self._said_at = now
        words = words_of(tick.decision.verdicts) if self._policy.on else {}
        self._due, self._said = due(tick.observation.pods, words, self._said, now)

    def conditions(self) -> Sequence[PodCondition]:
        waiting, self._due = self._due, ()
        return waiting
