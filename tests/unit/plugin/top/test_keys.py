"""What keys do to the view of a watch."""

import pytest

from kubectl_gpufence.verbs.top.screen import FOOTER, HELP, WatchView, keys_of, pressed, titles_of

PAGE = 10


def after(*keys: str, view: WatchView | None = None, namespace: str = "") -> WatchView | None:
    """Press keys one after the other."""
    at: WatchView | None = view or WatchView()
    for key in keys:
        assert at is not None
        at = pressed(at, key, titles_of(at.what, namespace), PAGE)
    return at


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1bOH\x1b[4~\x1b[5~\x1b[6~", ["home", "end", "page-up", "page-down"]),
        ("\x1bOP\x1bOS\x1b[15~\x1b[17~\x1b[21~", ["f1", "f4", "f5", "f6", "f10"]),
        ("\r\n\t\x1b[Z", ["enter", "enter", "tab", "back-tab"]),
        ("\x7f\x08\x15\x0c", ["backspace", "backspace", "ctrl-u", "ctrl-l"]),
        ("\x1b", ["escape"]),
        ("\x1b[99~\x01é", ["é"]),
    ],
)
def test_keys_have_names(sent: str, keys: list[str]) -> None:
    """Whatever a terminal sends for them; what nobody knows is left out."""
    assert keys == keys_of(sent)


@pytest.mark.parametrize("key", ["q", "Q", "f10"])
def test_keys_that_end(key: str) -> None:
    """Those of htop, top and nvitop."""
    assert None is after(key)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (("tab",), "cards"),
        (("tab", "tab"), "nodes"),
        (("tab", "tab", "tab"), "pods"),
        (("back-tab",), "nodes"),
        (("3",), "nodes"),
        (("2", "1"), "pods"),
    ],
)
def test_keys_that_lead_to_another_table(keys: tuple[str, ...], what: str) -> None:
    """Each table begins at its top, in its own order; the filter stays."""
    view = WatchView(sort="LIMIT", inverted=True, filter="x", offset=5)

    assert WatchView(what, filter="x") == after(*keys, view=view)


@pytest.mark.parametrize(
    ("keys", "sort"),
    [
        ((">",), "IDLE"),
        (("<",), "USED"),
        ((",", ","), "TOLD"),
        ((".", "f6", "."), "NAMESPACE"),
        (("M",), "USED"),
        (("L", "P"), "SHARE"),
        (("T",), "VERDICT"),
        (("N",), "POD"),
        (("tab", "L"), ""),
        (("tab", "M"), "USED"),
        (("x",), ""),
    ],
)
def test_keys_that_sort(keys: tuple[str, ...], sort: str) -> None:
    """
    From the column by which the table is ordered to the one beside it, round the edges, or by a
    letter to a column that there is.
    """
    view = after(*keys)

    assert view is not None
    assert sort == view.sort


def test_columns_that_are_not_there_are_passed_over() -> None:
    """In one namespace nobody sorts by namespaces."""
    view = after("T", ">", namespace="team-a")

    assert view is not None
    assert "POD" == view.sort


@pytest.mark.parametrize("key", ["I", "R"])
def test_keys_that_invert(key: str) -> None:
    """Twice is not at all, and another column begins in its own order."""
    assert WatchView(inverted=True) == after(key)
    assert WatchView() == after(key, key)
    assert WatchView(sort="USED") == after(key, "M")


@pytest.mark.parametrize(
    ("keys", "offset"),
    [
        (("down", "j"), 2),
        (("j", "up", "k", "k"), 0),
        (("page-down", "page-down", "page-up"), PAGE),
        (("j", "home"), 0),
        (("G",), 10**9),
        (("end", "g"), 0),
    ],
)
def test_keys_that_scroll(keys: tuple[str, ...], offset: int) -> None:
    """Never above the first line."""
    assert WatchView(offset=offset) == after(*keys)


@pytest.mark.parametrize("key", ["/", "\\", "f4"])
def test_keys_are_words_while_a_filter_is_typed(key: str) -> None:
    """Enter keeps what is typed, Escape leaves all of it, and keys without a sign do nothing."""
    assert WatchView(filter="q x", typing=True) == after(key, "q", " ", "x", "up")
    assert WatchView(filter="q") == after(key, "q", "x", "backspace", "enter")
    assert WatchView() == after(key, "q", "escape")
    assert WatchView(filter="b", typing=True) == after(key, "a", "ctrl-u", "b")
    assert WatchView() == after("escape", view=WatchView(filter="kept", offset=3))


def test_a_filter_has_an_end() -> None:
    """A whole file that somebody pastes is not taken."""
    view = after("/", *["a"] * 300)

    assert view is not None
    assert 200 == len(view.filter)


def test_keys_that_change_how_it_is_shown() -> None:
    """Pause and width; any key leaves the help, but for those that end."""
    assert WatchView(paused=True) == after(" ")
    assert WatchView() == after(" ", " ")
    assert WatchView(wide=True) == after("w")
    assert WatchView(help=True) == after("h")
    assert WatchView() == after("?", "j")
    assert None is after("f1", "q")


def test_the_keys_of_the_footer_are_in_the_help() -> None:
    """What is named in short is explained at length."""
    explained = " ".join(keys for keys, _ in HELP)

    assert [] == [key for key, _ in FOOTER if key not in ("h", "<>", "I") and key not in explained]
