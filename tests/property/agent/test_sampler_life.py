"""What holds for every sample, whatever the driver does to the children."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from agent.model.sample import Sample
from agent.nvml.protocol import Answer, Counted, NvmlFailure, Question
from agent.nvml.sampler import Sampler
from agent.nvml.settings import SamplerSettings
from gpufence.quantity import GIB
from tests.support.agent.builders import (
    COUNT,
    CRASH,
    HANG,
    IN_USE,
    LOST,
    NONSENSE,
    OPEN,
    Script,
    card_memory,
    listed,
    look,
    looked,
    processes_of,
)
from tests.support.running import examples

CARDS = 3
UUIDS = [f"GPU-{index}" for index in range(CARDS)]
SETTINGS = SamplerSettings(deadline_seconds=4.0)
LATE_SECONDS = 0.001

GOOD: dict[Question, Answer | str] = {
    COUNT: Counted(CARDS),
    **{look(i): looked(uuid, memory=card_memory((i + 1) * GIB)) for i, uuid in enumerate(UUIDS)},
    **{processes_of(uuid): listed(1.0, IN_USE) for uuid in UUIDS},
}
QUESTIONS = [OPEN, *GOOD]
FAILURES = [NvmlFailure(code, "nvmlCall") for code in (1, 3, 4, 7, 9, 12, 17, 18, 999, None)]
BAD: list[Answer | str] = [HANG, CRASH, NONSENSE, LOST, *FAILURES]


@dataclass(frozen=True)
class Tick:
    """What is wrong during one sample."""

    broken: dict[Question, Answer | str]
    seconds: float
    wait: float
    unkillable: bool
    suspects: frozenset[str]


ticks = st.builds(
    Tick,
    broken=st.dictionaries(st.sampled_from(QUESTIONS), st.sampled_from(BAD), max_size=3),
    seconds=st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.5]),
    wait=st.sampled_from([0.0, 1.0, 1.0, 70.0]),
    unkillable=st.sampled_from([False, False, False, True]),
    suspects=st.sets(st.sampled_from(UUIDS)).map(frozenset),
)


def check(sample: Sample, seconds: float, known: set[str]) -> None:
    """Hold one sample to what every sample promises."""
    shown = [item.card.uuid for item in sample.cards]

    assert seconds <= SETTINGS.deadline_seconds + LATE_SECONDS
    assert len(set(shown)) == len(shown)
    assert known <= set(shown)
    assert any(item.memory for item in sample.cards) or sample.trouble.text
    for item in sample.cards:
        assert (item.memory is not None and item.processes is not None) or item.trouble.text
        assert item.memory in {None, card_memory((item.card.index + 1) * GIB)}
        assert item.processes is None or (IN_USE,) == item.processes.processes


@examples(80)
@given(st.lists(ticks, max_size=12))
def test_every_sample_is_in_time_and_honest(life: list[Tick]) -> None:
    """
    No sample raises or is late; no figure is another card's or made up; what is unknown has a
    reason; no known card is forgotten; and once the driver is well again, so is the sample.
    """
    script = Script()
    opened = script.answers[OPEN]
    sampler = Sampler(SETTINGS, script.clock, script.start)
    known: set[str] = set()
    for tick in life:
        script.answers = {OPEN: opened, **GOOD, **tick.broken}
        script.seconds = tick.seconds
        script.unkillable = tick.unkillable
        script.clock.now += tick.wait
        before = script.clock()
        sample = sampler.sample(tick.suspects)
        check(sample, script.clock() - before, known)
        known |= {item.card.uuid for item in sample.cards}

    script.answers = {OPEN: opened, **GOOD}
    script.seconds, script.unkillable = 0.0, False
    for _ in range(3):
        script.clock.now += 4000
        sample = sampler.sample(frozenset())

    assert "" == sample.trouble.text
    assert [("", (IN_USE,))] * CARDS == [
        (item.trouble.text, item.processes and item.processes.processes) for item in sample.cards
    ]
