"""What can be typed, and amounts and tables as people read them, fitted to where they are shown."""

import argparse
import io
import json

import pytest

from gpufence.quantity import GIB, MIB
from kubectl_gpufence.arguments import patience, seconds
from kubectl_gpufence.completion import completions
from kubectl_gpufence.output import Output, output_to
from kubectl_gpufence.verbs import VERBS, parse
from kubectl_gpufence.view import (
    Bar,
    Cell,
    Display,
    Field,
    Tone,
    allowed,
    coloured,
    counted,
    exact,
    held,
    percent,
    share_tone,
    shortened,
    table,
    wrapped,
)
from tests.support.plugin import Screen

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "wanted"), [("5", 5.0), ("5s", 5.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0)]
)
def test_times_are_written_as_for_kubectl(text: str, wanted: float) -> None:
    """Numbers with units, several of them, or bare seconds."""
    assert wanted == seconds(text)


@pytest.mark.parametrize("text", ["", "s", "5 s", "-1s", "1x", "\u0665s", "1s2"])
def test_other_times_are_refused(text: str) -> None:
    """The error shows what a time looks like."""
    with pytest.raises(argparse.ArgumentTypeError, match="such as 5s or 1m30s"):
        seconds(text)


def test_what_is_left_out_has_its_usual_meaning() -> None:
    """Zero means no timeout, looks are a day apart at most, and top is about pods, once."""
    call = parse(["top"])

    assert (86_400.0, 3.0) == (patience("0"), patience("3s"))
    assert [86_400.0] * 2 == [
        parse([verb, "--interval", "99999999h"]).interval for verb in ("top", "dashboard")
    ]
    assert ("top", "pods", "", "", "table", False) == (
        *(call.verb, call.what, call.namespace),
        *(call.node, call.output, call.watch),
    )
    assert {"trainer-0"} == {
        parse(["explain", text]).pod for text in ("trainer-0", "pod/trainer-0", "pods/trainer-0")
    }
    assert None is parse(["release", "-A", "--dry-run"]).owner
    assert "deploy/a" == parse(["release", "deploy/a"]).owner


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        *((text, "usage: kubectl gpufence") for text in ("", "dance", "top dogs", "explain")),
        *((f"top {text}", "usage: kubectl gpufence top") for text in ("-n a -A", "-n a/b")),
        ("top --watch -o json", "usage: kubectl gpufence top"),
        ("top --request-timeout soon", "usage: kubectl gpufence top"),
        ("explain ../secrets", "usage: kubectl gpufence explain"),
        ("inspect node/a@b", "usage: kubectl gpufence inspect"),
        ("recommend -o wide", "usage: kubectl gpufence recommend"),
        *((f"dashboard --port {port}", "usage: kubectl") for port in ("0", "65536", "http")),
        *((f"keep {text}", "usage:") for text in ("deploy/a", "deploy/a --for 1h --clear")),
        *((text, "usage:") for text in ("keep --clear", "wake deploy/a --replicas few")),
        *((text, "usage:") for text in ("wake a/b/c", "release", "release -A", "idle deploy/a")),
        *((f"{verb.name} {what}--nonsense", "usage:") for verb in VERBS for what in ("", "a ")),
        ("tpo", "; did you mean top?\n"),
        ("top -o tabel", "; did you mean table?\n"),
        ("top --namespce=team-a", "; did you mean --namespace?\n"),
        ("explain trainer-0 --contxt b", "; did you mean --context?\n"),
        ("keep deploy/a --for soon", '--for: "soon" is no length of time; write a time of at'),
        ("keep deploy/a --for 30s", '--for: "30s" is too short; write a time of at least 60s'),
        ("keep deploy/a --until x", '--until: "x" is no moment; write it as RFC 3339, such as'),
        ("keep deploy/a --until 2001-01-01T00:00:00Z", "is over; name a moment after"),
        ("keep deploy/A_b --clear", '"A_b" is no name of an object; names have small letters'),
        *(
            (f"wake deploy/a --replicas {number}", f'"{number}" is no number of replicas; write')
            for number in ("0", "9999999999", "2147483648")
        ),
        ("release deploy/a -n X_", '"X_" is no name of an object; names have small letters'),
    ],
)
def test_a_call_that_cannot_be_read_ends_with_two(typed: str, said: str, capsys: Captured) -> None:
    """Option, value and remedy are named, or the usage, before any cluster is asked."""
    with pytest.raises(SystemExit) as ended:
        parse(typed.split())
    shown = capsys.readouterr()

    assert (2, "", True) == (ended.value.code, shown.out, said in shown.err)


@pytest.mark.parametrize(
    "verb", ["", "top", "dashboard", "explain", "recommend", "doctor", "inspect"]
)
def test_every_verb_has_examples(verb: str, capsys: Captured) -> None:
    """Help ends with lines that can be typed."""
    with pytest.raises(SystemExit) as caught:
        parse([verb, "--help"] if verb else ["--help"])

    told = capsys.readouterr().out
    assert 0 == caught.value.code
    assert f"examples:\n  kubectl gpufence {verb}" in told
    assert all(len(line) <= 100 for line in told.splitlines())


def test_the_version_is_that_of_the_package(capsys: Captured) -> None:
    """One word for all of gpufence."""
    with pytest.raises(SystemExit):
        parse(["--version"])

    assert capsys.readouterr().out.startswith("gpufence 0.")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["to"], ["top\thow much GPU memory each pod holds"]),
        (["top", ""], ["cards", "nodes", "pods"]),
        (["top", "-o", "w"], ["wide"]),
        (["top", "--nam"], ["--namespace"]),
        (["nonsense", ""], []),
    ],
)
def test_kubectl_completes_what_is_typed(words: list[str], expected: list[str]) -> None:
    """Verbs, options and choices need no cluster."""
    assert expected == completions(words, {})


class OldScreen(Screen):
    encoding = "latin-1"


def test_colours_and_bars_are_for_terminals_that_know_them() -> None:
    """A pipe, NO_COLOR and a dumb terminal get plain text; a file also gets whole names."""

    def display(out: io.StringIO, **environ: str) -> Display:
        return output_to(out, io.StringIO(), environ).display

    assert display(Screen()).colour
    for plain in (display(Screen(), NO_COLOR="1"), display(Screen(), TERM="dumb")):
        assert not plain.colour
    assert (False, None) == (display(io.StringIO()).colour, display(io.StringIO()).width)
    assert [True, False] == [display(out).unicode for out in (Screen(), OldScreen())]


def test_a_narrow_terminal_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are as wide as the terminal, and what is noted beside them wraps."""
    monkeypatch.setenv("COLUMNS", "60")
    beside = Screen()
    terminal = output_to(Screen(), beside, {"TERM": "xterm"})
    terminal.notes(["nothing was measured, since the agents of most nodes are silent"])

    assert 60 == terminal.display.width
    assert ["note: nothing was measured, since the agents of most nodes", "  are silent"] == (
        beside.getvalue().splitlines()
    )


def test_notes_stay_out_of_the_answer() -> None:
    """Pipes carry the answer alone, and a new page clears a terminal only."""
    out, err, screen, file = io.StringIO(), io.StringIO(), Screen(), io.StringIO()
    terminal = Output(out, err, Display())
    terminal.json({"a": 1})
    terminal.notes(["something is missing"])
    for each in (screen, file):
        Output(each, io.StringIO(), Display()).clear()

    assert {"a": 1} == json.loads(out.getvalue())
    assert "note: something is missing\n" == err.getvalue()
    assert ("\x1b[H\x1b[2J", "\n") == (screen.getvalue(), file.getvalue())


NAME: Field[list[str]] = Field(title="NAME", cell=lambda row: row[0], shrinks=True)
USED: Field[list[str]] = Field(title="USED", cell=lambda row: row[1], right=True)
REST: Field[list[str]] = Field(title="REST", cell=lambda row: Cell(row[2], Tone.BAD))


def test_what_is_over_a_limit_never_reads_as_equal_to_it() -> None:
    """Uses are rounded up and limits down, shares too; unknown is no zero, JSON is exact."""
    assert ("3073Mi", "3072Mi") == (held(3 * GIB + 1), allowed(3 * GIB + MIB - 1))
    assert "101%" == percent(3 * GIB + 1, 3 * GIB)
    assert ("?", "-", "?", "-") == (held(None), allowed(None), percent(None, 1), percent(1, None))
    assert (None, "3072Mi", "3221225473") == (exact(None), exact(3 * GIB), exact(3 * GIB + 1))
    assert ["1 pod", "2 pods", "2 processes"] == [
        *(counted(number, "pod") for number in (1, 2)),
        counted(2, "process", "processes"),
    ]


@pytest.mark.parametrize(
    ("columns", "rows", "width", "expected"),
    [
        (
            [NAME, USED, REST],
            [["a", "10Mi", ""], ["long", "5Mi", "x"]],
            None,
            ["NAME  USED  REST", "a     10Mi", "long   5Mi  x"],
        ),
        (
            [NAME, USED],
            [["a" * 30 + "-end", "t" * 20]],
            40,
            ["NAME" + " " * 32 + "USED", f"{'a' * 9}…{'a' * 4}-end  {'t' * 20}"],
        ),
        ([NAME], [["a" * 40]], 5, ["NAME", "aaaaaa…aaaaa"]),
        ([NAME], [["a\x1b[31mb"]], None, ["NAME", "a?[31mb"]),
    ],
    ids=["numbers right", "names shrink", "never to nothing", "harmless"],
)
def test_columns_are_as_wide_as_needed(
    columns: list[Field[list[str]]], rows: list[list[str]], width: int | None, expected: list[str]
) -> None:
    """Numbers stand right, only names lose their middle, and none steers a terminal."""
    assert expected == table(columns, rows, Display(width=width))


def test_a_name_keeps_both_ends() -> None:
    """The middle goes, also where the terminal knows ASCII alone; sentences are harmless, too."""
    assert "abc…ij" == shortened("abcdefghij", 6, Display())
    assert "ab..ij" == shortened("abcdefghij", 6, Display(unicode=False))
    assert "abc" == shortened("abc", 6, Display())
    assert ["  a?[31mb"] == wrapped("a\x1b[31mb", "  ", Display())


@pytest.mark.parametrize(
    ("amounts", "display", "text"),
    [
        ((0, 10), Display(unicode=False), "...... 0%"),
        ((1, 10), Display(unicode=False), "#..... 10%"),
        ((10, 10), Display(unicode=False), "###### 100%"),
        ((99, 10), Display(unicode=False), "###### 990%"),
        ((None, 1), Display(), "?"),
        ((1, None), Display(), "-"),
        ((1, 2, 100), Display(width=99, unicode=False), "50%"),
        ((1, 2, 100), Display(width=100, unicode=False), "###... 50%"),
        ((1, 2, 100), Display(unicode=False), "###... 50%"),
    ],
)
def test_a_bar_shows_any_use_and_never_overflows(
    amounts: tuple[int, ...], display: Display, text: str
) -> None:
    """A little is one cell, too much is six, unknown is none; narrow terminals have no room."""
    used, limit, *least = amounts
    bar = Bar(used, limit, least_width=least[0]) if least else Bar(used, limit)

    assert text == bar.cell(display).text


def test_shares_turn_yellow_before_they_turn_red() -> None:
    """From nine tenths on it is time to look, above the limit it is too late; files stay plain."""
    bad = Cell("bad", Tone.BAD)

    assert [Tone.GOOD, Tone.WARN, Tone.WARN, Tone.BAD] == [
        share_tone(used, 10) for used in (8, 9, 10, 11)
    ]
    assert ["bad", "\x1b[31mbad\x1b[0m"] == [
        coloured(bad, Display(colour=colour)) for colour in (False, True)
    ]
