"""`top --watch` on a real terminal."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from gpufence.quantity import GIB
from gpufence.snapshot import write_snapshot
from tests.support.plugin import (
    AGENT,
    DENIED,
    PODS,
    Desk,
    listed,
    pod_row,
    raw_pod,
    snapshot,
    use_row,
)
from tests.support.pty_screen import PtyScreen
from tests.support.servers import hang, reply
from tests.support.site import surroundings

NAMES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")
CTRL_C, CTRL_U, CTRL_Z, ESCAPE = "\x03", "\x15", "\x1a", "\x1b"


@pytest.fixture
def crowded(desk: Desk) -> Desk:
    """A desk with six pods on one card, the first of them with the least."""
    rows = [
        pod_row(use_row((place + 1) * GIB // 4), uid=name, name=name)
        for place, name in enumerate(NAMES)
    ]
    desk.get(AGENT, reply(write_snapshot(snapshot(*rows)).encode()))
    pods = listed(*(raw_pod(name=name, uid=name) for name in NAMES))
    desk.get(PODS, pods)
    desk.get("/api/v1/pods", pods)
    return desk


@contextmanager
def watching(desk: Desk, *arguments: str, size: tuple[int, int] = (100, 16)) -> Iterator[PtyScreen]:
    command = [sys.executable, "-m", "kubectl_gpufence", "top", *arguments]
    watch = ["--watch", "--interval", "500ms", "--request-timeout", "2s"]
    with PtyScreen([*command, *watch], surroundings(desk.environ), size) as screen:
        yield screen


def pods(text: list[str]) -> list[str]:
    """Return the names of the pods on a screen, from top to bottom."""
    return [word for line in text[1:-1] for word in line.split()[:2] if word in NAMES]


def test_the_table_stands_between_title_and_keys(crowded: Desk) -> None:
    """The worst is first, and the last line says which keys there are."""
    with watching(crowded) as screen:
        text = screen.wait_for("quit")
        screen.press("q")
        code = screen.end()

    assert 0 == code
    assert text[0].startswith("gpufence top pods  namespace team-a  6 pods  ")
    assert "POD" == text[1].split()[0]
    assert "SHARE▼" in text[1]
    assert list(reversed(NAMES)) == pods(text)
    assert " q  quit   /  filter   <>  sort   I  invert   Tab  pods, cards, nodes" in text[15]


def test_the_terminal_is_as_it_was_after_every_end(crowded: Desk) -> None:
    """
    By a key, by Ctrl-C, or by a signal: keys echo again, there is a cursor, and the shell's screen
    is back.
    """
    codes = []
    for number in (None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with watching(crowded) as screen:
            screen.wait_for("quit")

            assert {"1049"} == screen.modes & {"1049", "25"}
            assert screen.before != screen.attributes()
            if number is None:
                screen.press(CTRL_C)
            else:
                screen.signal(number)
            codes.append(screen.end())
            assert {"25", "7"} == screen.modes
            assert screen.before == screen.attributes()
            assert "Traceback" not in screen.raw
    assert [130] * 4 == codes


def test_a_watch_that_is_left_for_a_while_is_taken_up_again(crowded: Desk) -> None:
    """Ctrl-Z gives the shell its terminal back; `fg` draws everything anew."""
    shell = ["bash", "--norc", "--noprofile", "-i"]
    environment = {**surroundings(crowded.environ), "PS1": "READY "}
    with PtyScreen(shell, environment, (100, 16)) as screen:
        screen.wait_for("READY")
        screen.press(f"{sys.executable} -m kubectl_gpufence top --watch\n")
        screen.wait_for("quit")
        screen.press(CTRL_Z)
        screen.wait_for("Stopped")

        assert not {"1049"} & screen.modes
        screen.press("fg\n")
        screen.wait(lambda text: len(pods(text)) == 6 and "quit" in text[15])
        assert "1049" in screen.modes
        screen.press("q")
        screen.wait(lambda _: "1049" not in screen.modes)
        screen.press("exit 7\n")

        assert 7 == screen.end()


def test_keys_sort(crowded: Desk) -> None:
    """
    By the column before or behind, by a letter, and the other way round; the column bears a mark.
    """
    with watching(crowded) as screen:
        screen.wait_for("SHARE▼")
        screen.press("N")
        text = screen.wait_for("POD▲")

        assert list(NAMES) == pods(text)
        screen.press("I")
        assert list(reversed(NAMES)) == pods(screen.wait_for("POD▼"))
        screen.press(">")
        screen.wait_for("NODE▲")
        screen.press("<<")
        screen.wait_for("VERDICT▼")
        screen.press(".")
        screen.wait_for("POD▲")
        screen.press("MI")
        assert list(NAMES) == pods(screen.wait_for("USED▲"))


def test_a_filter_shows_what_has_its_words(crowded: Desk) -> None:
    """It works while it is typed, keeps when it is entered, and goes by Escape."""
    with watching(crowded) as screen:
        screen.wait_for("quit")
        screen.press("/ELTq")
        screen.wait_for("filter: ELTq_")
        screen.press("\x7f")
        text = screen.wait(lambda text: pods(text) == ["delta"])

        assert "1 of 6 pods" in text[0]
        screen.press("\r")
        screen.wait_for("with ELT")
        screen.press("/" + CTRL_U + "alpha within")
        screen.wait(lambda text: pods(text) == ["alpha"])
        screen.press(ESCAPE)
        screen.wait(lambda text: len(pods(text)) == 6)


def test_tab_goes_from_pods_to_cards_to_nodes(crowded: Desk) -> None:
    """And back, and by numbers."""
    with watching(crowded, "-A") as screen:
        screen.wait_for("top pods  all namespaces")
        screen.press("\t")
        text = screen.wait_for("top cards")

        assert "Tesla T4" in text[2]
        screen.press("\t")
        assert "AGENT" in screen.wait_for("top nodes")[1]
        screen.press("\x1b[Z")
        screen.wait_for("top cards")
        screen.press("1")
        screen.wait_for("top pods")


def test_a_low_window_scrolls(crowded: Desk) -> None:
    """By lines, pages and to the ends, and never beyond them."""
    with watching(crowded, size=(100, 6)) as screen:
        screen.wait(lambda text: pods(text) == ["foxtrot", "echo", "delta"])
        screen.press("j")
        text = screen.wait(lambda text: pods(text) == ["echo", "delta", "charlie"])

        assert ", from 2" in text[0] or "6 pods, from 2" in text[0]
        screen.press("\x1b[6~\x1b[6~\x1b[6~")
        screen.wait(lambda text: pods(text) == ["charlie", "bravo", "alpha"])
        screen.press("k")
        screen.wait(lambda text: pods(text) == ["delta", "charlie", "bravo"])
        screen.press("\x1b[H")
        screen.wait(lambda text: pods(text) == ["foxtrot", "echo", "delta"])


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_a_window_is_filled_and_never_overflows(crowded: Desk, columns: int) -> None:
    """Narrow ones leave columns out, the verdict and the amounts last."""
    with watching(crowded, "-A") as screen:
        screen.wait_for("quit")
        screen.resize(columns, 12)
        text = screen.wait(lambda text: text[0].startswith("gpufence top pods"))

        if columns >= 60:
            assert {"POD", "USED"} <= set(text[1].split())
            assert "within" in text[2]
        keys = " q  quit   /  filter   <>  sort   I  invert   Tab  pods, cards, nodes"
        screen.wait(lambda text: text[11].startswith(keys[:columns].rstrip()))
        frames = screen.raw.split("\x1b[2J")[-1]
        assert "\n" not in frames


def test_what_has_not_changed_is_not_written_again(crowded: Desk) -> None:
    """
    Nothing flickers: from one look to the next only the line with the time is written, and all of a
    change at once.
    """
    with watching(crowded) as screen:
        screen.wait_for("quit")
        before = len(screen.raw)
        screen.wait(lambda _: screen.raw.count("\x1b[?2026l") >= 3)
        later = screen.raw[before:]

    assert "foxtrot" not in later
    assert "\x1b[2J" not in later
    assert later.count("\x1b[?2026h") == later.count("\x1b[?2026l")


def test_a_pause_keeps_what_is_shown(crowded: Desk) -> None:
    """Looks go on behind it, and are there when it ends."""
    with watching(crowded) as screen:
        screen.wait_for("foxtrot")
        screen.press(" ")
        screen.wait_for("PAUSED")
        crowded.get(PODS, listed(raw_pod(name="later", uid="later")))
        seen = len(crowded.server.seen(f"GET {PODS}"))
        screen.wait(lambda _: len(crowded.server.seen(f"GET {PODS}")) >= seen + 2)

        assert not any("later" in line for line in screen.text())
        screen.press(" ")
        screen.wait_for("later")


def test_keys_do_not_wait_for_an_agent_that_hangs(crowded: Desk) -> None:
    """
    The view changes while a look takes its time, and the agent is unknown then, which a note says.
    """
    with watching(crowded) as screen:
        screen.wait_for("foxtrot")
        crowded.get(AGENT, hang())
        screen.press("r")
        screen.press("N")
        screen.wait_for("POD▲")
        text = screen.wait_for("1 agent (gpu-1): it does not answer in time")

    assert "agent silent" in " ".join(text)
    assert " 0Mi" not in " ".join(text)


def test_a_look_that_fails_is_noted(crowded: Desk) -> None:
    """
    The last table stays; only where there has never been one it is an error, on the screen of the
    shell.
    """
    with watching(crowded) as screen:
        screen.wait_for("foxtrot")
        crowded.get(PODS, DENIED)
        text = screen.wait_for("this is an old look")

        assert 6 == len(pods(text))
    with watching(crowded) as screen:
        code = screen.end()

    assert (1, set()) == (code, screen.modes)
    assert "kubectl gpufence: GET" in screen.raw


def test_help_names_every_key(crowded: Desk) -> None:
    """Any key goes back."""
    with watching(crowded) as screen:
        screen.wait_for("quit")
        screen.press("h")
        text = screen.wait_for("any key goes back")

        assert any("Ctrl-Z leaves for a while" in line for line in text)
        screen.press("x")
        screen.wait_for("foxtrot")


def test_what_is_no_terminal_gets_one_table_after_the_other(crowded: Desk, tmp_path: Path) -> None:
    """A pipe, or a terminal that knows nothing, gets no control characters."""
    command = [sys.executable, "-m", "kubectl_gpufence", "top", "--watch", "--interval", "100ms"]
    log = tmp_path / "log"
    log.touch()
    for shell in (f'exec "$@" > {log}', 'TERM=dumb exec "$@"'):
        with PtyScreen(
            ["bash", "-c", shell, "bash", *command], surroundings(crowded.environ), (100, 40)
        ) as screen:
            screen.wait(partial(_has_three, log if ">" in shell else None, screen))
            screen.press(CTRL_C)

            assert 130 == screen.end()
        assert "\x1b[?" not in screen.raw
    assert "\x1b" not in log.read_text()


def _has_three(log: Path | None, screen: PtyScreen, _: list[str]) -> bool:
    text = screen.raw if log is None else log.read_text()
    return text.count("POD ") >= 3
