"""What can be typed, and what it goes to."""

import argparse
import io
import json

import pytest

from kubectl_gpufence.arguments import patience, seconds
from kubectl_gpufence.completion import completions
from kubectl_gpufence.output import Output, output_to
from kubectl_gpufence.verbs import VERBS, parse
from kubectl_gpufence.view import Display
from tests.support.plugin import Screen


class OldScreen(Screen):
    encoding = "latin-1"


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


def test_a_timeout_of_zero_waits() -> None:
    """Zero means no timeout, as for kubectl."""
    assert (86_400.0, 3.0) == (patience("0"), patience("3s"))


@pytest.mark.parametrize("verb", ["top", "dashboard"])
def test_looks_are_a_day_apart_at_most(verb: str) -> None:
    """Nobody can wait for longer than the clock counts."""
    assert 86_400.0 == parse([verb, "--interval", "99999999h"]).interval


def test_pods_of_the_current_namespace_are_what_top_shows() -> None:
    """Without further words top is about pods, as a table, once."""
    call = parse(["top"])

    assert ("top", "pods", "", "", "table", False) == (
        call.verb,
        call.what,
        call.namespace,
        call.node,
        call.output,
        call.watch,
    )


@pytest.mark.parametrize("text", ["trainer-0", "pod/trainer-0", "pods/trainer-0"])
def test_a_pod_may_be_named_with_its_kind(text: str) -> None:
    """What `kubectl get -o name` prints can be pasted."""
    assert "trainer-0" == parse(["explain", text]).pod


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["top", "dogs"],
        ["top", "-n", "a", "-A"],
        ["top", "-n", "a/b"],
        ["top", "--watch", "-o", "json"],
        ["explain"],
        ["explain", "../secrets"],
        ["inspect", "node/a b"],
        ["recommend", "-o", "wide"],
        ["top", "--request-timeout", "soon"],
        ["dashboard", "--port", "0"],
        ["dashboard", "--port", "65536"],
        ["dashboard", "--port", "http"],
    ],
)
def test_a_call_that_cannot_be_read_ends_with_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage is shown, and no cluster is looked for."""
    with pytest.raises(SystemExit) as caught:
        parse(arguments)

    assert 2 == caught.value.code
    assert "usage: kubectl gpufence" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_a_wrong_option_ends_every_verb_with_two(verb: str) -> None:
    """Whether or not what it is about is named."""
    for named in ([], ["trainer-0"]):
        with pytest.raises(SystemExit) as caught:
            parse([verb, *named, "--nonsense"])

        assert 2 == caught.value.code


@pytest.mark.parametrize(
    "verb", ["", "top", "dashboard", "explain", "recommend", "doctor", "inspect"]
)
def test_every_verb_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Help ends with lines that can be typed."""
    with pytest.raises(SystemExit) as caught:
        parse([verb, "--help"] if verb else ["--help"])

    told = capsys.readouterr().out
    assert 0 == caught.value.code
    assert f"examples:\n  kubectl gpufence {verb}" in told
    assert all(len(line) <= 100 for line in told.splitlines())


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """One word for all of gpufence."""
    with pytest.raises(SystemExit):
        parse(["--version"])

    assert capsys.readouterr().out.startswith("gpufence 0.")


def test_colours_are_for_terminals_that_want_them() -> None:
    """A pipe, NO_COLOR and a dumb terminal get plain text; a file also gets whole names."""
    err = io.StringIO()

    assert output_to(Screen(), err, {}).display.colour
    assert not output_to(Screen(), err, {"NO_COLOR": "1"}).display.colour
    assert not output_to(Screen(), err, {"TERM": "dumb"}).display.colour
    assert not output_to(io.StringIO(), err, {}).display.colour
    assert None is output_to(io.StringIO(), err, {}).display.width


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


def test_bars_are_drawn_with_what_the_terminal_knows() -> None:
    """An encoding without block characters gets ASCII."""
    assert output_to(Screen(), io.StringIO(), {}).display.unicode
    assert not output_to(OldScreen(), io.StringIO(), {}).display.unicode


def test_a_new_page_clears_a_terminal_only() -> None:
    """What goes to a file stays readable."""
    screen, file = Screen(), io.StringIO()
    Output(screen, io.StringIO(), Display()).clear()
    Output(file, io.StringIO(), Display()).clear()

    assert ("\x1b[H\x1b[2J", "\n") == (screen.getvalue(), file.getvalue())


def test_notes_stay_out_of_the_answer() -> None:
    """Pipes carry the answer alone."""
    out, err = io.StringIO(), io.StringIO()
    terminal = Output(out, err, Display())
    terminal.json({"a": 1})
    terminal.notes(["something is missing"])

    assert {"a": 1} == json.loads(out.getvalue())
    assert "note: something is missing\n" == err.getvalue()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["tpo"], "top"),
        (["top", "-o", "tabel"], "table"),
        (["top", "--namespce=team-a"], "--namespace"),
        (["explain", "trainer-0", "--contxt", "b"], "--context"),
    ],
)
def test_what_may_have_been_meant_is_named(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong verb, option or choice ends with 2, and with the nearest right one."""
    with pytest.raises(SystemExit) as ended:
        parse(typed)

    assert 2 == ended.value.code
    assert capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")


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
