"""
Servers that plan the card's memory by themselves, and the words of the shells that start them.
"""

from contextlib import suppress
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import gpushare, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import NO_CARD, decide, environment, rewritten, variables
from webhook.engines import shell
from webhook.engines.launch import Budget, SpentError
from webhook.rewrite import Refusal, Rewrite, Unchanged

APPENDED = "--gpu-memory-utilization=$(GPUFENCE_SERVER_FRACTION)"


def served(args: list[str] | None = None, *, wish: bool = False, **item: Any) -> dict[str, Any]:
    """Build a pod whose container starts vLLM, unless told otherwise."""
    container = gpushare() | {"image": "vllm/vllm-openai:v0.11"} | item
    if args is not None:
        container["args"] = args
    return pod(container, annotations={names.ARGS: "enabled"} if wish else {})


@pytest.mark.parametrize(
    ("flag", "fault"),
    [
        ("0.9", "is too much"),
        ("junk", "is no value that can be read"),
        ("$(MINE)", "is not known before it runs"),
    ],
)
def test_a_flag_that_is_too_much_is_warned_about(flag: str, fault: str) -> None:
    """A flag above the limit, or one that cannot be read, is named with what to write instead."""
    _, said = rewritten(served([f"--gpu-memory-utilization={flag}"]))

    assert (
        f'main: --gpu-memory-utilization "{flag}" {fault}; this pod may use 3072Mi of 15360Mi. '
        "Write 0.166666 there, or set gpufence.io/args: enabled; until then only eviction holds it"
    ) == said.warnings[0]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("vllm serve m", f"vllm serve m {APPENDED}"),
        ("vllm serve m --config f", f"vllm serve m {APPENDED} --config f"),
        ("vllm serve --port 80", f"vllm serve {APPENDED} --port 80"),
        ('exec vllm serve "$MODEL" $ARGS', f'exec vllm serve "$MODEL" {APPENDED} $ARGS'),
        ("vllm serve \\\n  m \\\n  --x", f"vllm serve \\\n  m {APPENDED} \\\n  --x"),
        ("vllm serve m 2>&1 | tee log", f"vllm serve m {APPENDED} 2>&1 | tee log"),
        ("a; vllm serve m & wait", f"a; vllm serve m {APPENDED} & wait"),
        ("if x; then vllm serve m; fi", f"if x; then vllm serve m {APPENDED}; fi"),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model m",
            f"python3 -m vllm.entrypoints.openai.api_server {APPENDED} --model m",
        ),
        ("python -m dynamo.vllm --model m", f"python -m dynamo.vllm {APPENDED} --model m"),
        (
            "python -m vllm.entrypoints.cli.main serve m --x",
            f"python -m vllm.entrypoints.cli.main serve m {APPENDED} --x",
        ),
        ("vllm bench throughput --model m", f"vllm bench throughput {APPENDED} --model m"),
        ("sh -c 'vllm serve m'", f"sh -c 'vllm serve m {APPENDED}'"),
        ('eval "vllm serve m $EXTRA"', f'eval "vllm serve m {APPENDED} $EXTRA"'),
        ("CMD='vllm serve m'; exec $CMD --x", f"CMD='vllm serve m'; exec $CMD {APPENDED} --x"),
        ("CMD=(vllm serve m); ${CMD[@]}", f"CMD=(vllm serve m {APPENDED}); ${{CMD[@]}}"),
        ("trl vllm-serve --model m", f"trl vllm-serve {APPENDED} --model m"),
        ("trap 'kill -$$' 0; vllm serve m", f"trap 'kill -$$' 0; vllm serve m {APPENDED}"),
        ("A='vllm serve'; $A m --x $$", f"A='vllm serve'; $A m {APPENDED} --x $$"),
        ('eval "vllm serve \\\n m --x"', f'eval "vllm serve \\\n m {APPENDED} --x"'),
        ("vllm serve $(MODEL) --x", f"vllm serve $(MODEL) {APPENDED} --x"),
        ("vllm serve m --x $UTIL", f"vllm serve m {APPENDED} --x $UTIL"),
    ],
)
def test_the_flag_is_put_in_where_a_shell_starts_the_server(script: str, expected: str) -> None:
    """
    In a shell's text the flag stands right behind what the server is known by, and behind its
    model, so that whatever the user wrote behind it counts as the last.
    """
    asked = served(wish=True, command=["bash", "-c", script], image="x")
    result, said = rewritten(asked)

    assert ["bash", "-c", expected] == result["spec"]["containers"][0]["command"]
    assert isinstance(decide(result), Unchanged)
    assert said.plan.containers["main"].cap_bytes is not None


@pytest.mark.parametrize(
    ("value", "expected"), [("0.1", "0.1"), ("0.9", "$(GPUFENCE_SERVER_FRACTION)")]
)
def test_the_flag_may_be_among_what_a_text_is_put_together_of(value: str, expected: str) -> None:
    """What a script was given counts in a text that it puts together, and is lowered there."""
    item: Any = {"command": ["bash", "-c", 'eval "vllm serve /m $@"', "--"], "image": "x"}
    args = ["--gpu-memory-utilization", value]
    result, said = rewritten(served(args, wish=True, **item))

    assert expected == result["spec"]["containers"][0]["args"][1]
    assert not isinstance(decide(served(args, **item), Mode.EVICT), Refusal)
    assert said.plan.containers["main"].cap_bytes is not None


def test_in_observe_and_without_a_card_nothing_is_appended() -> None:
    """Where no card is known the flag would be empty, and in observe the arguments stay."""
    watched, _ = rewritten(served(["--model", "m"], wish=True), Mode.OBSERVE)
    result, said = rewritten(served(["--model", "m"], wish=True), policy=NO_CARD)

    for made in (result, watched):
        assert ["--model", "m"] == made["spec"]["containers"][0]["args"]
    assert any("so that no flag is set" in text for text in said.warnings)


def test_a_card_unknown_and_no_wish_is_silent_about_arguments() -> None:
    """Without the wish, an unknown card is not blamed on arguments."""
    _, said = rewritten(served(["--model", "m"]), policy=NO_CARD)

    assert not any("argument" in text for text in said.warnings)


def test_a_flag_that_cannot_be_changed_is_warned_about() -> None:
    """A flag in a text that nothing can be changed in is named with what to write there."""
    script = 'eval "vllm serve \\"m\\" --gpu-memory-utilization 0.9"'
    _, said = rewritten(served(wish=True, command=["sh", "-c", script], image="x"))

    assert (
        'main: --gpu-memory-utilization "0.9" is too much; this pod may use 3072Mi of 15360Mi. '
        "Write $(GPUFENCE_SERVER_FRACTION) there (gpufence cannot: the command is put together); "
        "until then only eviction holds it"
    ) == said.warnings[0]


def test_a_planner_that_may_run_is_said_without_a_card_too() -> None:
    """Where no card is known, the sentence about PyTorch's cap names no amounts."""
    _, said = rewritten(served(["x"], image="vllm-tools:1"), policy=NO_CARD)

    assert any("dies of one at start. Where PyTorch alone runs" in text for text in said.warnings)


def test_a_namespace_that_enables_arguments_blames_nobody() -> None:
    """Where the namespace lets flags be set for all, a pod without a server is no fault."""
    said = decide(served(["x"], image="app:1"), namespace={names.ARGS: "enabled"})

    assert isinstance(said, Rewrite)
    assert () == said.warnings


@pytest.mark.parametrize(
    ("tag", "default"),
    [("v0.19.1", "0.9"), ("v0.20.0", "0.92"), ("nightly", "0.92"), ("v1.2.3-x86", "0.92")],
)
def test_what_vllm_takes_by_itself_depends_on_its_version(tag: str, default: str) -> None:
    """From 0.20 on vLLM takes 0.92 of the card, before that 0.9."""
    _, said = rewritten(served(["--model", "m"], image=f"vllm/vllm-openai:{tag}"))

    assert f"vLLM takes {default} of the card by itself" in said.warnings[0]


def test_a_wish_for_the_servers_own_variable_counts() -> None:
    """A user may hold the server lower still through the variable that the flag reads."""
    asked = served(["--model", "m"], wish=True, env=variables(GPUFENCE_SERVER_FRACTION="0.05"))
    result, _ = rewritten(asked)

    assert "0.05" == environment(result)[names.ENV_SERVER]


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
    """Quotes, comments, redirections and here-documents go; expansions stay as written."""
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
