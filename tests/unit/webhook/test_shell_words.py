"""The words of a shell's command line, and where they stand."""

from contextlib import suppress

import pytest

from tests.support.observing import quiet_seconds
from webhook.engines import shell
from webhook.engines.launch import Budget, SpentError

LONG = 16 * 1024
MOST_SECONDS = 0.2


def read_script(source: str) -> shell.Script:
    return shell.read_script(source, Budget())


def words(source: str) -> list[list[str]]:
    return [[word.text for word in command] for command in read_script(source).commands]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a b", [["a", "b"]]),
        ("a;b&&c||d|e&f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a # b\nc#d", [["a"], ["c#d"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a 2>&1 >out <in &>>all b", [["a", "b"]]),
        ("a <<END b\nc\nEND\nd", [["a", "b"], ["d"]]),
        ("a <<-END\n\tc\n\tEND\nd", [["a"], ["d"]]),
        ("a <<<b c", [["a", "c"]]),
        ("(a; { b; })", [["a"], ["{", "b"], ["}"]]),
        ("a $(b $(c ')') \"d)\") e", [["a", "$(b $(c ')') \"d)\")", "e"]]),
        ('a `b c` ${d:-"}"} $((1 + (2)))', [["a", "`b c`", '${d:-"}"}', "$((1 + (2)))"]]),
        ("a $'b\\n' $\"c\" $d$1$@ $", [["a", "b\\n", "c", "$d$1$@", "$"]]),
        ('a "b\\"c\\\nd"', [["a", 'b"cd']]),
        ('a "${b:-\'}" c', [["a", "${b:-'}", "c"]]),
        ("a \"$(b 'c d' \\) )\"", [["a", "$(b 'c d' \\) )"]]),
        ("a $'b\\'c' d", [["a", "b\\'c", "d"]]),
        ("a > >(b 'c' | d) e <(f)", [["a", "e", "<(f)"]]),
        ("a $(b # it's\n) ${#c} $((16#f)) d", [["a", "$(b # it's\n)", "${#c}", "$((16#f))", "d"]]),
        ("a=(b # c)\n 'd e' \\\n) f; g+=()", [["a=", "f"], ["g+="]]),
    ],
)
def test_words_are_what_a_shell_makes_of_them(source: str, expected: list[list[str]]) -> None:
    """
    Quotes, comments, redirections and here-documents are taken off; expansions stay as written.
    """
    assert expected == words(source)


@pytest.mark.parametrize(
    "source",
    [
        "a 'b",
        'a "b',
        "a $(b",
        "a ${b",
        "a `b",
        "a <<END\nb",
        "a >",
        "a <<'END",
        "a $('b",
        "a=(b",
        "a=(b (c",
        "a $'b",
    ],
)
def test_a_text_without_its_end_says_so(source: str) -> None:
    """A quote, bracket or here-document without its other half leaves the text unclear."""
    assert not read_script(source).clear


def test_a_word_knows_where_it_stands() -> None:
    """A word's place in the text includes its quotes."""
    source = "a 'b c'"
    word = read_script(source).commands[0][1]

    assert "'b c'" == source[word.start : word.end]


def test_a_word_knows_what_only_the_shell_can_tell() -> None:
    """A word is exact unless an expansion stands in it outside of single quotes."""
    command = read_script("a '$b' \"$c\" \\$d $e").commands[0]

    assert [True, True, False, True, False] == [word.exact for word in command]
    assert [False, False, False, False, True] == [word.split for word in command]


def test_a_command_that_reads_a_document_is_noted() -> None:
    """A command that is fed by a here-document or here-string is known."""
    assert frozenset({1}) == read_script("a\npython3 - <<END\nb\nEND").fed


@pytest.mark.parametrize(
    "piece",
    ["'", '"', "`", "$(", "${", "(", "\\", "<<A\n", "a<<", "$$", '"$(', "x ", "{", "#", "&"],
)
def test_a_hostile_text_takes_no_longer_than_an_ordinary_one(piece: str) -> None:
    """Reading takes time in proportion to its steps, however long the text is."""

    def read(budget: Budget) -> None:
        with suppress(SpentError):
            shell.read_script(piece * LONG, budget)

    assert quiet_seconds(read, Budget, enough=MOST_SECONDS) < MOST_SECONDS


def test_a_list_keeps_its_words() -> None:
    """The words of a list stand where they are written, without comments."""
    source = "a=(b # c\n 'd')"
    word = read_script(source).commands[0][0]
    items = word.items or ()

    assert [("b", "b"), ("d", "'d'")] == [
        (item.text, source[item.start : item.end]) for item in items
    ]
