"""
What is asked of cards beside their memory and their lists: who works there, and the most that each
process has ever held. Nothing that fails here keeps a card from being fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.sample import NO_TROUBLE, CardWork
from agent.nvml.cards import WorkAttempt
from agent.nvml.protocol import Accounted, Ask, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from agent.model.sample import Trouble
    from agent.nvml.protocol import Answer
    from agent.nvml.session import Session
    from agent.nvml.settings import SamplerSettings

UNACCOUNTED_SECONDS: Final = 600.0
"""How long a card is not asked again for what its driver does not tell."""

_NEVER_MEASURED: Final = WorkAttempt(0.0)
_NO_PEAKS: Final[Mapping[int, int]] = {}


class Meters:
    """The last answers about each card; `why` says why a question has none."""

    def __init__(
        self,
        session: Session,
        settings: SamplerSettings,
        why: Callable[[Question, Answer | None], Trouble],
    ) -> None:
        self._session = session
        self._settings = settings
        self._why = why
        self._works: dict[str, WorkAttempt] = {}
        self._peaks: dict[str, dict[int, int]] = {}
        self._again_at: dict[str, float] = {}

    def ask_for_work(self, there: Collection[str], now: float, until: float) -> None:
        """
        Ask what is done on each card, every few seconds; before the lists, which may be slow, so
        that who worked lately is on a list that is younger.
        """
        pause = self._settings.work_seconds - self._settings.interval_seconds / 2
        kept = {uuid: item for uuid, item in self._works.items() if uuid in there}
        due = [uuid for uuid in there if uuid not in kept or now >= kept[uuid].asked_at + pause]
        questions = {uuid: Question(Ask.WORK, uuid) for uuid in due}
        answers = self._session.ask(list(questions.values()), until) if due else {}
        for uuid, question in questions.items():
            answer = answers.get(question)
            work = answer if isinstance(answer, CardWork) else None
            trouble = NO_TROUBLE if work else self._why(question, answer)
            kept[uuid] = WorkAttempt(now, work, trouble)
        self._works = kept

    def ask_for_peaks(self, listed: Collection[str], now: float, until: float) -> None:
        """Ask for the most that processes have held, of cards that have just been listed."""
        self._peaks = {}
        due = [uuid for uuid in listed if now >= self._again_at.get(uuid, now)]
        questions = {uuid: Question(Ask.PEAKS, uuid) for uuid in due}
        answers = self._session.ask(list(questions.values()), until) if due else {}
        for uuid, question in questions.items():
            answer = answers.get(question)
            if isinstance(answer, Accounted) and answer.on:
                self._peaks[uuid] = {item.pid: item.used_bytes or 0 for item in answer.peaks}
            else:
                self._again_at[uuid] = now + UNACCOUNTED_SECONDS

    def work_of(self, uuid: str) -> WorkAttempt:
        return self._works.get(uuid, _NEVER_MEASURED)

    def peaks_of(self, uuid: str) -> Mapping[int, int]:
        """Return what was said in this sample."""
        return self._peaks.get(uuid, _NO_PEAKS)

    def forget(self) -> None:
        self._works, self._peaks, self._again_at = {}, {}, {}
