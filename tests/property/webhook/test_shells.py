"""
What a shell would run after a rewrite, beside what it would have run before: real shells judge.

Programs are stubs that print their arguments; the kubelet's part, to put values into `$(NAME)`, is
done as it does it.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufence import names
from tests.support.builders import container, pod
from tests.support.rewriting import decide, rewritten
from webhook.engines.launch import Budget
from webhook.engines.shell import read_script
from webhook.rewrite import Rewrite

STUB = '#!/bin/sh\nprintf "%s" "${0##*/}"; for word; do printf "|%s" "$word"; done; echo\n'
PROGRAMS = ("vllm", "python3", "ray", "numactl2", "notes")
SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]
SHARE = "0.366666"
ADDED = f"--gpu-memory-utilization={SHARE}"
RUNNING = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_values = st.sampled_from(["0.9", "0.1", "0.95", ".9", "1"])
_flags = st.one_of(
    st.builds("--gpu-memory-utilization {}".format, _values),
    st.builds("--gpu-memory-utilization={}".format, _values),
    st.builds('--gpu-memory-utilization="{}"'.format, _values),
    st.builds("--gpu-memory-utilization='{}'".format, _values),
    st.builds("'--gpu-memory-utilization={}'".format, _values),
    st.builds('"--gpu-memory-utilization" "{}"'.format, _values),
    st.builds("--gpu-memory-utilization \\\n  {}".format, _values),
    st.just('--gpu-memory-utilization "${UTIL:-0.9}"'),
    st.just("--gpu_memory_utilization 0.9"),
    st.just("--gpu-memory-util 0.9"),
)
_words = st.sampled_from(
    [
        *("--port 8000", "'a b'", '"c d"', "e\\ f", "--x=$HOME", '"$HOME/y"', "'$HOME'"),
        *("$(notes z)", "`notes w`", "--json '{\"a\": [1, 2]}'", '"#"', "a#b", "~"),
        *('"say \\"hi\\""', "\\'", "$((1+2))", "${NONE:-default}", "'it'\"'\"'s'", "--gpus"),
        *("*.nothing", "-"),
    ]
)
_servers = st.builds(
    lambda before, flag, after: " ".join(["vllm serve m", *before, *flag, *after]),
    st.lists(_words, max_size=3),
    st.lists(_flags, max_size=2),
    st.lists(_words, max_size=2),
)
_others = st.sampled_from(
    [
        *("notes --gpu-memory-utilization 0.9", "notes a | cat", "true", "notes one > /dev/null"),
        *("# vllm serve --gpu-memory-utilization 0.9", "export UTIL=0.8", "X=1 notes b", "set -e"),
        *("if true; then notes c; fi", "for i in 1 2; do notes $i; done", "( notes d )"),
        *("{ notes e; }", "cat <<END\nvllm serve --gpu-memory-utilization 0.9\nEND"),
        *("notes 'multi\nline'", "notes f && notes g || notes h", "ray start --head", "notes 2>&1"),
        *("case x in x) notes i ;; esac", "greet() { notes j; }\ngreet", "echo ${#HOME}"),
        *("notes \"$(notes 'k l')\" ", "eval notes m"),
    ]
)
_scripts = st.builds(
    lambda before, server, after: "\n".join([*before, server, *after]),
    st.lists(_others, max_size=4),
    st.one_of(
        _servers,
        _servers.map("exec {}".format),
        _servers.map("A=1 {}".format),
        _servers.map("{} &\nwait".format),
        _servers.map("{} 2>&1 | cat".format),
        _servers.map("serve() {{ {}; }}\nserve".format),
        _servers.map('set -- {}\n"$@"'.format),
        _servers.map("{} $(notes n # it's\n)".format),
    ),
    st.lists(_others, max_size=2),
)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            path = Path(folder) / name
            path.write_text(STUB, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        yield Path(folder)


def run(argv: list[str], folder: Path) -> list[str]:
    """Run a container's command and return what its programs were given."""
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/root"}
    result = subprocess.run(
        argv, env=variables, cwd=folder, capture_output=True, text=True, timeout=20, check=False
    )
    return result.stdout.splitlines()


def expanded(argv: list[str]) -> list[str]:
    """Put in what the kubelet puts in: the values of variables of ours."""
    return [text.replace(f"$({names.ENV_SERVER})", SHARE) for text in argv]


def served(shell: str, script: str) -> dict[str, Any]:
    item = container("main", **{"nvidia.com/gpu": "1"})
    item |= {"image": "app:1", "command": [shell, "-c", script]}
    return pod(item, annotations={names.MEMORY: "6Gi", names.ARGS: "enabled"})


def only_lowered(before: list[str], after: list[str]) -> bool:
    """
    Return whether two outputs are the same but for values of the server's flag, which are ours now,
    and for the flag where there was none.
    """
    if len(before) != len(after):
        return False
    for old, new in zip(before, after, strict=True):
        olds, news = old.split("|"), new.split("|")
        if len(olds) < len(news) and olds[:2] == ["vllm", "serve"] and ADDED in news[3:]:
            news.remove(ADDED)
        words = list(zip(olds, news, strict=False))
        if len(olds) != len(news):
            return False
        for at, (one, other) in enumerate(words):
            flagged = "util" in other or (at and "util" in words[at - 1][1])
            if one != other and not (flagged and other.endswith(SHARE)):
                return False
    return True


@pytest.mark.parametrize("shell", SHELLS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(script=_scripts)
def test_a_rewrite_changes_nothing_but_the_flag(shell: str, script: str, stubs: Path) -> None:
    """
    Whatever a script is, its programs get after the rewrite what they got before, but for the
    server's flag, which is there now and within its share.
    """
    before = served(shell, script)
    after, _ = rewritten(before)
    argv = after["spec"]["containers"][0]["command"]
    said = decide(before)

    assert isinstance(said, Rewrite)
    assert "args" not in after["spec"]["containers"][0]
    told = run(expanded(argv), stubs)

    assert only_lowered(run(before["spec"]["containers"][0]["command"], stubs), told)
    assert all(
        any(f"{sign}{value}" in line for sign in "|=" for value in (SHARE, "0.1"))
        for line in told
        if line.startswith("vllm|serve|m")
    )


@pytest.mark.needs("bash")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=st.lists(_words, max_size=3),
    flag=st.lists(_flags, max_size=1),
    after=st.lists(_words, max_size=2),
    gap=st.sampled_from([" ", "\n  ", " # it's --gpu-memory-utilization 0.2\n"]),
)
def test_a_rewrite_changes_nothing_but_the_flag_in_a_list(
    before: list[str], flag: list[str], after: list[str], gap: str, stubs: Path
) -> None:
    """A flag within a list of bash's is lowered there, and nothing else of the list."""
    words = gap.join(["serve", "m", *before])
    script = (
        f'A=(vllm {words}{gap})\nA+=({" ".join(flag)} {gap.join(after)}{gap})\nexec "${{A[@]}}"'
    )
    given_pod = served("bash", script)
    after_pod, _ = rewritten(given_pod)
    old, new = (item["spec"]["containers"][0]["command"] for item in (given_pod, after_pod))
    lowered = run(expanded(new), stubs)

    assert only_lowered(run(old, stubs), lowered)
    assert any(SHARE in line or "|0.1" in line or "=0.1" in line for line in lowered)


@pytest.mark.parametrize("shell", SHELLS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(_words, min_size=1, max_size=6))
def test_words_are_split_as_the_shell_splits_them(
    shell: str, words: list[str], stubs: Path
) -> None:
    """A command's words that hold no expansion are those that a shell hands to the program."""
    plain = [word for word in words if "$" not in word and "`" not in word and word != "~"]
    script = " ".join(["notes", *plain])
    read = read_script(script, Budget())

    assert read.clear
    assert ["|".join(word.text for word in read.commands[0])] == run([shell, "-c", script], stubs)


@given(st.text(alphabet="ab \n'\"\\$`(){};&|<>#=-EOF", max_size=60))
def test_any_text_is_read_to_its_end(text: str) -> None:
    """No text makes the reader fail, and every word stands where it says."""
    for words in read_script(text, Budget()).commands:
        for word in words:
            assert 0 <= word.start <= word.end <= len(text)
