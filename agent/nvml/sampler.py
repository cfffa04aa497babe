"""The parent's end: asks the child, replaces it where it must, and always answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent.clock import boottime
from agent.model.sample import (
    NO_TROUBLE,
    UNSENSED,
    CardSample,
    CardSensors,
    CardWork,
    Sample,
    Trouble,
    TroubleCode,
)
from agent.nvml.cards import (
    CardReading,
    ListAttempt,
    ListPace,
    WorkAttempt,
    card_readings,
    list_attempt,
    list_is_due,
)
from agent.nvml.child import Child
from agent.nvml.faults import trouble_of
from agent.nvml.protocol import Accounted, Ask, Counted, Listed, Looked, NvmlFailure, Question
from agent.nvml.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from agent.nvml.child import Channel
    from agent.nvml.protocol import Answer
    from agent.nvml.settings import SamplerSettings
    from gpufence.cards import Card

_COUNT: Final = Question(Ask.COUNT)
_NO_CARDS: Final = Trouble(
    "the driver shows no card; give the agent's pod the runtime class nvidia and "
    "NVIDIA_VISIBLE_DEVICES=all"
)
_NOT_CUT: Final = Trouble(
    "every card is in MIG mode and none has an instance; create some with nvidia-smi mig, "
    "or leave the mode"
)
_SLOW: Final = Trouble("the driver has not answered yet; it is slow, or busy with another program")
_KEPT_LISTS: Final = 3
"""
How many times the age at which a list is renewed it may reach while the driver is slow with it.
"""
_NEVER_LISTED: Final = ListAttempt(0.0, None)
_PROBE_PATIENCE: Final = 12
"""For how many looks a child for which nobody waits may take."""
_PROBE_PAUSE_SECONDS: Final = 30.0


class Sampler:
    """
    The real `agent.ports.Cards`.

    Slow is not hung: a list that comes late counts, and one that twice did not come in time is
    asked of a second child, for which nobody waits, until that one finds it well again.

    One thread uses it, one that lives as long as it is needed: the kernel ends the child with the
    thread that started it. `unidentified` names cards that have never said who they are or how much
    memory they have, and so are in no sample.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        clock: Callable[[], float] = boottime,
        start: Callable[[SamplerSettings], Channel] = Child,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._pace = ListPace(
            settings.interval_seconds, settings.list_seconds, settings.moved_bytes
        )
        self._start = start
        self._session = Session(settings, start, clock)
        self._probe: Session | None = None
        self._prompt = True
        self._count: int | None = None
        self._known: dict[str, Card] = {}
        self._lists: dict[str, ListAttempt] = {}
        self._meters = Meters(self._session, settings, self._why)
        self.unidentified: tuple[Trouble, ...] = ()

    @property
    def restarts(self) -> int:
        """Count the children that were replaced."""
        return max(self._session.started - 1, 0)

    def sample(self, suspects: frozenset[str]) -> Sample:
        """
        Look at every card; list the processes of those that are suspect or otherwise due.

        Takes as long as the settings say and, where a child must be killed, a fraction of a second
        more.
        """
        now = self._clock()
        until = now + self._settings.deadline_seconds
        looks = self._look(until) if self._session.ready(until) else {}
        if not any(isinstance(look, Looked) for look in looks.values()) and self._session.trouble:
            return self._blind(now, self._session.trouble)
        if not looks:
            return self._blind(now, _SLOW if self._count is None else _NO_CARDS)
        seen = card_readings(looks, self._known)
        self._known = {reading.card.uuid: reading.card for reading in seen.cards}
        self.unidentified = seen.unidentified
        there = {reading.card.uuid: reading for reading in seen.cards if reading.there}
        self._meters.ask_for_work(there, now, until)
        listed = self._list(there, suspects, now, until)
        self._meters.ask_for_peaks(listed, now, until)
        self._meters.ask_for_sensors(there, now)
        return Sample(
            taken_at=now,
            cards=tuple(self._card(reading) for reading in seen.cards),
            driver=self._session.driver,
            trouble=_trouble(seen.cards, seen.unidentified),
            unidentified=seen.unidentified,
        )

    def close(self) -> None:
        """Stop measuring."""
        self._session.close()
        self._end_probe()

    def _look(self, until: float) -> dict[int, Looked | Trouble]:
        """Look at all indices there are, in one go unless there are more than the last time."""
        known = self._count or 0
        questions = {index: _look_at(index) for index in range(known)}
        answers = self._session.ask([_COUNT, *questions.values()], until)
        counted = answers.get(_COUNT)
        if isinstance(counted, Counted):
            more = {i: _look_at(i) for i in range(known, counted.cards)}
            self._count = counted.cards
            questions = {i: q for i, q in (questions | more).items() if i < counted.cards}
            answers |= self._session.ask(list(more.values()), until) if more else {}
        return {
            index: answer if isinstance(answer, Looked) else self._why(question, answer)
            for index, question in questions.items()
            for answer in (answers.get(question),)
        }

    def _list(
        self,
        there: Mapping[str, CardReading],
        suspects: frozenset[str],
        now: float,
        until: float,
    ) -> list[str]:
        """
        Renew the lists that are due, forget those of cards that are not there, and return whose
        list is new.
        """
        due = [uuid for uuid in there if uuid in suspects or self._is_due(there[uuid], now)]
        questions = {uuid: Question(Ask.LIST, uuid) for uuid in sorted(due, key=self._asked_at)}
        answers = self._ask_for_lists(list(questions.values()), until)
        renewed = {}
        for uuid, question in questions.items():
            answer = answers.get(question)
            if answer is None and self._may_wait(uuid, now):
                continue
            result = (
                answer if isinstance(answer, Listed | NvmlFailure) else self._why(question, None)
            )
            last = self._lists.get(uuid)
            renewed[uuid] = list_attempt(result, there[uuid].memory, now, last)
        kept = {uuid: item for uuid, item in self._lists.items() if uuid in there}
        self._lists = kept | renewed
        if not any(self._session.avoided(Question(Ask.LIST, uuid)) for uuid in there):
            self._end_probe()
        return [uuid for uuid, item in renewed.items() if item.processes is not None]

    def _ask_for_lists(self, questions: list[Question], until: float) -> dict[Question, Answer]:
        """
        Ask in one go, and one by one after a sample in which not all came: the next look would have
        to wait for all that stands open.
        """
        usual = [item for item in questions if not self._session.avoided(item)]
        answers: dict[Question, Answer] = {}
        for batch in [usual] if self._prompt else [[item] for item in usual]:
            if batch and self._clock() < until:
                answers |= self._session.ask(batch, until)
        self._prompt = all(item in answers for item in usual)
        avoided = [item for item in questions if item not in usual]
        return answers | (self._ask_apart(avoided) if avoided else {})

    def _ask_apart(self, questions: list[Question]) -> dict[Question, Answer]:
        """Return what the second child has to say by now of lists that have ended the first one."""
        now = self._clock()
        if self._probe is None:
            usual = self._settings
            patient = replace(
                usual,
                deadline_seconds=_PROBE_PATIENCE * usual.deadline_seconds,
                restart_limit_seconds=min(usual.restart_limit_seconds, _PROBE_PAUSE_SECONDS),
            )
            self._probe = Session(patient, self._start, self._clock)
        answers = self._probe.ask(questions, now) if self._probe.ready(now) else {}
        # Well below what is too slow, or a list on the verge of that would go to and fro.
        prompt = self._settings.deadline_seconds / 2 + self._settings.interval_seconds
        for question in questions:
            self._probe.forgive(question)
            answer = answers.get(question)
            if isinstance(answer, Listed) and now - answer.at < prompt:
                self._session.forgive(question)
        return answers

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _may_wait(self, uuid: str, now: float) -> bool:
        """
        Return whether a card may keep its list for now, since the driver is only slow with it.
        """
        last = self._lists.get(uuid)
        if last is None or last.processes is None or self._session.trouble:
            return False
        return now - last.processes.listed_at <= _KEPT_LISTS * self._settings.list_seconds

    def _asked_at(self, uuid: str) -> float:
        last = self._lists.get(uuid)
        return 0.0 if last is None else last.asked_at

    def _is_due(self, reading: CardReading, now: float) -> bool:
        used = None if reading.memory is None else reading.memory.used_bytes
        return list_is_due(self._lists.get(reading.card.uuid), used, now, self._pace)

    def _why(self, question: Question, answer: Answer | None) -> Trouble:
        """Return why a question has no answer."""
        if isinstance(answer, NvmlFailure):
            return trouble_of(answer)
        return self._session.avoided(question) or self._session.trouble or _SLOW

    def _card(self, reading: CardReading) -> CardSample:
        uuid = reading.card.uuid
        listed = self._lists.get(uuid, _NEVER_LISTED)
        done = self._meters.work_of(uuid)
        return CardSample(
            reading.card,
            reading.memory,
            listed.processes,
            listed.mps,
            reading.trouble or listed.trouble,
            done.work,
            done.trouble,
            self._meters.peaks_of(uuid),
            self._meters.sensors_of(uuid),
        )

    def _blind(self, now: float, trouble: Trouble) -> Sample:
        """Return that nothing can be seen, of the cards that were there before."""
        self._lists = {}
        self._meters.forget()
        self.unidentified = ()
        cards = (CardSample(card, None, None, trouble=trouble) for card in self._known.values())
        return Sample(now, tuple(cards), self._session.driver, trouble)


def _look_at(index: int) -> Question:
    return Question(Ask.LOOK, str(index))


def _trouble(cards: tuple[CardReading, ...], unidentified: tuple[Trouble, ...]) -> Trouble:
    """Return why no card at all can be read, if that is so."""
    if any(reading.memory is not None for reading in cards):
        return NO_TROUBLE
    reasons = (*(reading.trouble.of_card(reading.card.index) for reading in cards), *unidentified)
    if not reasons:
        return _NOT_CUT
    ill = (item for item in reasons if item.code is not TroubleCode.UNIFIED)
    return next(ill, NO_TROUBLE)


UNACCOUNTED_SECONDS: Final = 600.0
"""How long a card is not asked again for what its driver does not tell."""

SENSE_SECONDS: Final = 10.0
"""How often a card is asked for its temperature and power, which are good for three times that."""

_NEVER_MEASURED: Final = WorkAttempt(0.0)
_NEVER_SENSED: Final = (0.0, UNSENSED)
_NO_PEAKS: Final[Mapping[int, int]] = {}


class Meters:
    """
    The last answers about each card beside its memory and its list: who works there, the most that
    each process has ever held, and its sensors; `why` says why a question has none. Nothing that
    fails here keeps a card from being fenced.
    """

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
        self._sensed: dict[str, tuple[float, CardSensors]] = {}

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

    def ask_for_sensors(self, there: Collection[str], now: float) -> None:
        """Ask for temperature and power, and leave the answer to the next sample: none waits."""
        age = {uuid: now - at for uuid, (at, _) in self._sensed.items() if uuid in there}
        kept = {uuid: self._sensed[uuid] for uuid in age if age[uuid] < 3 * SENSE_SECONDS}
        due = [uuid for uuid in there if age.get(uuid, SENSE_SECONDS) >= SENSE_SECONDS]
        questions = {uuid: Question(Ask.SENSE, uuid) for uuid in due}
        answers = self._session.ask(list(questions.values()), now) if due else {}
        for uuid, question in questions.items():
            answer = answers.get(question)
            if answer is not None:
                kept[uuid] = now, answer if isinstance(answer, CardSensors) else UNSENSED
        self._sensed = kept

    def work_of(self, uuid: str) -> WorkAttempt:
        return self._works.get(uuid, _NEVER_MEASURED)

    def peaks_of(self, uuid: str) -> Mapping[int, int]:
        """Return what was said in this sample."""
        return self._peaks.get(uuid, _NO_PEAKS)

    def sensors_of(self, uuid: str) -> CardSensors:
        return self._sensed.get(uuid, _NEVER_SENSED)[1]

    def forget(self) -> None:
        self._works, self._peaks, self._again_at, self._sensed = {}, {}, {}, {}
