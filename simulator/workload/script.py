"""
The little language in which a workload is told what to do.

    script    = step { ";" step }
    step      = [ "after" DURATION ] action
    action    = "hold" SIZE [ "managed" ]      hold so much from now on, more or less than before
              | "grow" SIZE                    take so much more at once
              | "grow" SIZE "/s" "to" SIZE     take so much more each second
              | "shrink" SIZE                  give so much back at once
              | "shrink" SIZE "/s" "to" SIZE   give so much back each second
              | "free"                         give everything back but the context
              | "need" SIZE                    use no more than that; the framework keeps the rest
              | "busy" NUMBER [ "%" ]          keep the card so busy
              | "wait" DURATION
              | "await" PATH                   wait until a file is there
              | "fork" NUMBER                  start workers that take as much each, then go on too
              | "exit" NUMBER
              | "crash"                        end by SIGSEGV
              | "leave"                        end the first thread and hold on in another
              | "serve" HOST:PORT/QUEUE        work off messages of a broker, for ever: each says in
                                               its header `seconds` how long it keeps the card busy
    SIZE      = as Kubernetes writes it: 2Gi, 512Mi, 1500M
    DURATION  = 5s, 500ms, 2m
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WORKERS = 64
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_QUEUE = re.compile(r"([-.\w]+):(\d{1,5})/([-.\w]+)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}


@dataclass(frozen=True, slots=True)
class Hold:
    size: int
    managed: bool = False


@dataclass(frozen=True, slots=True)
class Resize:
    """Take more (or, negative, less) at once."""

    delta: int


@dataclass(frozen=True, slots=True)
class Slide:
    """Move to a size at a steady rate per second; which way is said, so that a mistake shows."""

    rate: int
    target: int
    up: bool


@dataclass(frozen=True, slots=True)
class Need:
    """Use less, and let the framework's cache keep what it has beyond that."""

    size: int


@dataclass(frozen=True, slots=True)
class Busy:
    percent: int


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Await:
    path: str


@dataclass(frozen=True, slots=True)
class Fork:
    workers: int


@dataclass(frozen=True, slots=True)
class Exit:
    code: int


@dataclass(frozen=True, slots=True)
class Crash:
    pass


@dataclass(frozen=True, slots=True)
class Leave:
    pass


@dataclass(frozen=True, slots=True)
class Serve:
    """Whose messages to work off."""

    host: str
    port: int
    queue: str


Action = Hold | Resize | Slide | Need | Busy | Wait | Await | Fork | Exit | Crash | Leave | Serve


@dataclass(frozen=True, slots=True)
class Step:
    text: str
    action: Action


def read_script(text: str) -> tuple[Step, ...]:
    """Read a script; the first word that makes no sense raises and says what was expected."""
    steps: list[Step] = []
    for number, part in enumerate(text.split(";"), start=1):
        if part.strip():
            steps.extend(_read_step(number, part.strip()))
    return tuple(steps)


class _Words:
    def __init__(self, number: int, text: str) -> None:
        self._field = f"script, step {number}"
        self._words = text.replace("%", " % ").split()
        self._place = 0

    def take(self, expected: str) -> str:
        word = self.peek()
        if word is None:
            raise self._error(" ".join(self._words), "ends too early", expected)
        self._place += 1
        return word

    def peek(self) -> str | None:
        return self._words[self._place] if self._place < len(self._words) else None

    def skip(self, word: str) -> bool:
        matches = self.peek() == word
        self._place += matches
        return matches

    def rest(self) -> str:
        return " ".join(self._words[self._place :]).replace(" %", "%")

    def end(self) -> None:
        if (word := self.peek()) is not None:
            raise self._error(word, "is one word too many", 'write ";" before the next step')

    def size(self, word: str | None = None) -> int:
        expected = "write an amount such as 2Gi or 512Mi"
        word = self.take(expected) if word is None else word
        try:
            return read_bytes(word, self._field)
        except InvalidError:
            raise self._error(word, "is no amount of memory", expected) from None

    def rate(self, word: str, amount: str) -> int:
        size = self.size(amount)
        if size == 0:
            raise self._error(word, "is no rate", "write more than zero")
        return size

    def number(self, most: int) -> int:
        expected = f"write a whole number from 0 to {most}"
        word = self.take(expected)
        if not word.isascii() or not word.isdigit() or int(word) > most:
            raise self._error(word, "is out of place", expected)
        return int(word)

    def seconds(self) -> float:
        expected = "write a duration such as 5s, 500ms or 2m"
        word = self.take(expected)
        match = _DURATION.fullmatch(word)
        if match is None:
            raise self._error(word, "is no duration", expected)
        return float(match[1]) * _SECONDS[match[2]]

    def queue(self) -> Serve:
        expected = "write where it is, such as 127.0.0.1:61613/jobs"
        word = self.take(expected)
        match = _QUEUE.fullmatch(word)
        if match is None:
            raise self._error(word, "is no queue", expected)
        return Serve(match[1], int(match[2]), match[3])

    def keyword(self, wanted: str) -> None:
        expected = f'write "{wanted}"'
        word = self.take(expected)
        if word != wanted:
            raise self._error(word, "is out of place", expected)

    def unknown(self, word: str) -> InvalidError:
        choices = ", ".join(["after", *_ACTIONS])
        return self._error(word, "is no action", f"use one of {choices}")

    def _error(self, word: str, reason: str, expected: str) -> InvalidError:
        return InvalidError(Problem(self._field, word, reason, expected))


def _read_step(number: int, text: str) -> list[Step]:
    words = _Words(number, text)
    steps = []
    if words.skip("after"):
        seconds = words.seconds()
        steps.append(Step(f"wait {seconds:g}s", Wait(seconds)))
        text = words.rest()
    name = words.take("write an action such as hold 2Gi")
    read = _ACTIONS.get(name)
    if read is None:
        raise words.unknown(name)
    action = read(words)
    words.end()
    return [*steps, Step(text, action)]


def _hold(words: _Words) -> Hold:
    return Hold(words.size(), managed=words.skip("managed"))


def _move(words: _Words, *, up: bool) -> Resize | Slide:
    word = words.take("write an amount such as 512Mi or a rate such as 512Mi/s")
    amount, slash, _ = word.partition("/s")
    if not slash:
        return Resize(words.size(amount) if up else -words.size(amount))
    rate = words.rate(word, amount)
    words.keyword("to")
    return Slide(rate, words.size(), up)


def _busy(words: _Words) -> Busy:
    busy = Busy(words.number(100))
    words.skip("%")
    return busy


_ACTIONS: dict[str, Callable[[_Words], Action]] = {
    "hold": _hold,
    "grow": lambda words: _move(words, up=True),
    "shrink": lambda words: _move(words, up=False),
    "free": lambda _: Hold(0),
    "need": lambda words: Need(words.size()),
    "busy": _busy,
    "wait": lambda words: Wait(words.seconds()),
    "await": lambda words: Await(words.take("write the path of a file")),
    "fork": lambda words: Fork(words.number(MOST_WORKERS)),
    "exit": lambda words: Exit(words.number(255)),
    "crash": lambda _: Crash(),
    "leave": lambda _: Leave(),
    "serve": lambda words: words.queue(),
}
