"""What holds for every pause, every cutting of a stream and every answer of a stranger."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.backoff import Backoff
from kube.errors import KubeError
from kube.replies import RawReply, read_reply
from kube.watch import LineCutter, read_change

chances = st.floats(0, 1, exclude_max=True)
texts = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
statuses = st.fixed_dictionaries(
    {"kind": st.just("Status"), "status": st.just("Failure")},
    optional=dict.fromkeys(("code", "reason", "message", "details", "metadata"), values),
)


@given(attempt=st.integers(1, 10**9), chance=chances)
def test_no_pause_leaves_its_bounds(attempt: int, chance: float) -> None:
    """However long the trouble lasts, a pause is between half a second and thirty."""
    assert 0.5 <= Backoff().delay_seconds(attempt, chance) <= 30


@given(attempt=st.integers(1, 50), chance=chances)
def test_pauses_never_shrink(attempt: int, chance: float) -> None:
    """With the same draw, a later attempt waits at least as long."""
    backoff = Backoff()

    assert backoff.delay_seconds(attempt, chance) <= backoff.delay_seconds(attempt + 1, chance)


@given(lines=st.lists(texts.filter(str.strip)), sizes=st.lists(st.integers(1, 7), min_size=1))
def test_cuts_of_the_network_do_not_show(lines: list[str], sizes: list[int]) -> None:
    """Any cutting into chunks, through characters too, gives the same lines."""
    data = "".join(f"{line}\n" for line in lines).encode()
    cutter, received, position, turn = LineCutter(10_000), [], 0, 0
    while position < len(data):
        size = sizes[turn % len(sizes)]
        received += cutter.feed(data[position : position + size])
        position, turn = position + size, turn + 1

    assert lines == [line.decode() for line in received]


@given(
    status=st.integers(100, 599),
    body=st.binary() | (values | statuses).map(lambda value: json.dumps(value).encode()),
    wait=st.none() | st.text(),
)
def test_any_answer_is_an_object_or_an_error(status: int, body: bytes, wait: str | None) -> None:
    """No answer of a stranger raises what callers do not expect, nor a message of many lines."""
    reply = RawReply(status, {} if wait is None else {"retry-after": wait}, body)
    try:
        assert isinstance(read_reply("GET /x", reply), dict)
    except KubeError as error:
        assert len(str(error).splitlines()) == 1


@given(line=st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_a_change_or_an_error(line: bytes) -> None:
    """No line of a watch raises what a reflector does not expect."""
    with pytest.raises(KubeError):
        read_change("GET /x", line)
