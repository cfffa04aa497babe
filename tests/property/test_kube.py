"""What a client decides without a server."""

import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufence.times import Backoff
from kube import UnreachableError
from kube.background import Background
from kube.errors import KubeError
from kube.replies import RawReply, read_reply
from kube.watch import LineCutter, read_change
from tests.support.observing import wait_until

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


KEYS = st.sampled_from("abc")
AWAY = UnreachableError("GET /x: nobody answers")


class HurriedClock:
    """A clock that waits for what is without bound alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def chance(self) -> float:
        return 0.0

    def wait(self, stop: threading.Event, seconds: float) -> None:
        self.now += min(seconds, 1.0)
        stop.wait(min(seconds, 0.0001) if seconds < 1000 else None)


@dataclass
class Paper:
    """Is away as a plan says, and notes what was written of each key."""

    plan: list[bool]
    written: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, key: str, value: int) -> None:
        if self.plan and self.plan.pop():
            raise AWAY
        self.written[key].append(value)


@settings(max_examples=200, deadline=None)
@given(
    puts=st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=30),
    plan=st.lists(st.booleans(), max_size=40),
    early=st.integers(0, 30),
)
def test_the_last_word_about_each_key_is_written_and_none_before_it_later(
    puts: list[tuple[str, bool]], plan: list[bool], early: int
) -> None:
    """However the server comes and goes, and however puts and attempts fall together."""
    paper = Paper(plan)
    made = Background("words", paper, keep=len(puts), clock=HurriedClock())
    for number, (key, urgent) in enumerate(puts):
        if number == min(early, len(puts) - 1):
            made.start()
        made.put(key, number, urgent=urgent)
    last = {key: number for number, (key, _) in enumerate(puts)}
    wait_until(lambda: all(paper.written[key][-1:] == [number] for key, number in last.items()))
    made.stop(30)

    assert all(sorted(values) == values for values in paper.written.values())
    assert (0, 0, 0) == (made.dropped, made.refused, len(made))
    assert sum(map(len, paper.written.values())) == made.written
