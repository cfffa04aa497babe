"""Progress as a log and as a terminal show it."""

import io
import itertools
import time

import pytest

from simulator.progress import Progress

NEVER = 3600.0


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


def test_log_has_a_line_for_beginning_and_end() -> None:
    """In a log a step has a line when it begins and one with its duration."""
    stream = io.StringIO()
    clock = itertools.count(start=100.0, step=2.5).__next__
    with Progress(stream, every_seconds=NEVER, clock=clock).step("building etcd (1/3)"):
        pass

    assert "building etcd (1/3) ...\nbuilding etcd (1/3) ... 2.5 s, done\n" == stream.getvalue()


def test_failed_step_is_called_so() -> None:
    """A step that raises is told as failed, and the error goes on."""
    stream = io.StringIO()
    with (
        pytest.raises(ZeroDivisionError),
        Progress(stream, every_seconds=NEVER).step("dividing"),
    ):
        _ = 1 / 0

    assert stream.getvalue().endswith("s, failed\n")


def test_terminal_ticks_in_place() -> None:
    """On a terminal the line is overwritten and ended once."""
    stream = Terminal()
    clock = itertools.count(start=0.0, step=291.0).__next__
    with Progress(stream, every_seconds=NEVER, clock=clock).step("building"):
        pass

    assert "\r\x1b[Kbuilding ... 0 s\r\x1b[Kbuilding ... 291.0 s, done\n" == stream.getvalue()


def test_long_step_shows_that_it_lives() -> None:
    """While a step goes on, its seconds are told again and again."""
    stream = io.StringIO()
    deadline = time.monotonic() + 10
    with Progress(stream, every_seconds=0.001).step("waiting"):
        while stream.getvalue().count("\n") < 3 and time.monotonic() < deadline:
            time.sleep(0.001)

    assert stream.getvalue().count("waiting ...") >= 3


def test_without_a_stream_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress that nobody watches writes nowhere."""
    progress = Progress()
    progress.say("anything")
    with progress.step("something"):
        pass

    assert ("", "") == tuple(capsys.readouterr())
