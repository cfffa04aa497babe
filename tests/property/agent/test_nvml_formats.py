"""What holds for every list a driver writes and every line the child says."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from agent.model.sample import CardMemory, CardSensors, CardWork, GpuProcess
from agent.nvml.process_lists import SENTINELS, WIDEST, read_entries
from agent.nvml.protocol import (
    Accounted,
    Answer,
    Ask,
    Listed,
    Looked,
    NvmlFailure,
    Question,
    Seen,
    read_answer,
    read_line,
    read_question,
    write_answer,
    write_question,
)
from gpufence.errors import GpufenceError

NOT_AVAILABLE = 2**64 - 1

amounts = st.integers(0, 2**48 - 1)
pids = st.integers(1, 2**22)
processes = st.builds(GpuProcess, pids, st.none() | amounts, st.just(0))
lists = st.lists(processes, max_size=40).map(tuple)
uncertain = st.builds(GpuProcess, pids, st.none(), amounts)
merged_lists = st.lists(processes | uncertain, max_size=40, unique_by=lambda item: item.pid).map(
    tuple
)
instances = st.sampled_from([2**32 - 1, 0, 1, 7, 13])
times = st.floats(0, 1e9)
some_pids = st.frozensets(pids, max_size=9)
workers = st.dictionaries(pids, st.floats(0, 1), max_size=9)
words = st.text(max_size=20)
codes = st.none() | st.integers(0, 999)
failures = st.builds(NvmlFailure, codes, words, words)
memories = st.builds(CardMemory, amounts, amounts, amounts, st.none() | amounts)
capabilities = st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9))
seen = st.builds(Seen, words, words, capabilities, memories | failures, words)
answers = st.one_of(
    st.tuples(
        st.just(Ask.LOOK),
        st.builds(
            Looked,
            seen,
            st.none() | st.lists(seen, max_size=3).map(tuple),
            st.lists(failures, max_size=2).map(tuple),
        ),
    ),
    st.tuples(st.just(Ask.LIST), st.builds(Listed, times, merged_lists, some_pids) | failures),
    st.tuples(st.just(Ask.PEAKS), st.builds(Accounted, st.booleans(), lists) | failures),
    st.tuples(st.just(Ask.SENSE), st.builds(CardSensors, *3 * [st.none() | codes]) | failures),
    st.tuples(
        st.just(Ask.WORK),
        st.builds(CardWork, times, times, times, st.none() | workers, st.booleans()) | failures,
    ),
)


@given(lists, st.sampled_from([16, 24, 32]), instances, st.sampled_from(SENTINELS))
def test_every_layout_is_read_back(
    expected: tuple[GpuProcess, ...], width: int, instance: int, sentinel: int
) -> None:
    """Whatever the width, the amounts and what the sentinel is, the same processes come out."""
    raw = b"".join(
        struct.pack(
            "=I4xQIIQ",
            item.pid,
            NOT_AVAILABLE if item.used_bytes is None else item.used_bytes,
            instance,
            instance,
            0,
        )[:width]
        for item in expected
    ).ljust(64 * WIDEST, bytes([sentinel]))

    assert expected == read_entries(raw, len(expected), sentinel)


@given(st.binary(max_size=64 * WIDEST), st.integers(0, 2**32 - 1), st.sampled_from(SENTINELS))
def test_no_buffer_is_too_odd(raw: bytes, count: int, sentinel: int) -> None:
    """Any bytes and any count are either a list of that length or none."""
    found = read_entries(raw.ljust(64 * WIDEST, bytes([sentinel])), count, sentinel)

    assert found is None or count == len(found)


@given(st.integers(0, 2**53), answers)
def test_answers_survive_the_line(number: int, said: tuple[Ask, Answer]) -> None:
    """What the child says is what the parent reads, whatever the texts in it."""
    ask, answer = said
    line = write_answer(number, answer)
    read = read_line(line)

    assert (number, answer) == (read.number, read_answer(read, ask))
    assert 1 == line.count("\n")


@given(st.integers(0, 2**53), st.sampled_from(Ask), words)
def test_questions_survive_the_line(number: int, ask: Ask, subject: str) -> None:
    """What the parent asks is what the child reads."""
    question = Question(ask, subject)

    assert (number, question) == read_question(write_question(number, question))


@given(
    st.text(max_size=60) | st.text(max_size=30).map("[1,false,{}]".format),
    st.sampled_from(Ask),
)
def test_odd_lines_raise_nothing_else(line: str, ask: Ask) -> None:
    """A line that is none is an error of ours, never another one."""
    try:
        read_answer(read_line(line), ask)
    except GpufenceError as error:
        assert str(error)
