"""Words that are put, fail and are written in any order, from several threads."""

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kube import UnreachableError
from kube.background import Background
from tests.support.observing import wait_until

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
