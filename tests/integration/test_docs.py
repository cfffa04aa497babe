"""Commands in pages and runbooks run as they stand there."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from simulator.controlplane import Assets
from simulator.controlplane.programs import KUBECTL
from tests.support.tree import FOLDER, every_command, runbooks
from tools import ROOT
from tools.manifests import COMPONENTS

PROMPT: Final = "$ "
ANYTHING: Final = "..."
RUN: Final = "run"
NOT_RUN: Final = "not run: "

_FENCE = re.compile(r"```(\w*)\s*$")
_MARK = re.compile(r"<!-- ((?:not )?run\b.*?) -->$")
_SHELL = frozenset({"console", "sh", "bash", "shell"})
_HEREDOC = re.compile(r"<<-?'?(\w+)'?")


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """`line` is where the block begins; `mark` is empty where nobody said whether to run it."""

    line: int
    mark: str
    commands: tuple[Command, ...]


def blocks(page: str) -> tuple[Block, ...]:
    """Return the blocks of a page that hold commands."""
    lines = page.splitlines()
    found = []
    opened: int | None = None
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if not match:
            continue
        if opened is not None:
            inside = lines[opened + 1 : number]
            if _FENCE.match(lines[opened]).group(1) in _SHELL or _prompted(inside):  # type: ignore[union-attr]  # it matched when the block was opened
                found.append(Block(opened + 1, _mark(lines[:opened]), tuple(_commands(inside))))
            opened = None
        else:
            opened = number
    return tuple(found)


def agrees(expected: tuple[str, ...], printed: str) -> bool:
    """Tell whether a command printed what the page says, but for blanks at the ends of lines."""
    if not expected:
        return True
    pattern = "\n".join(
        ".*?".join(re.escape(part) for part in line.rstrip().split(ANYTHING)) for line in expected
    )
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _prompted(lines: list[str]) -> bool:
    return any(line.startswith(PROMPT) for line in lines)


def _mark(above: list[str]) -> str:
    said = next((line for line in reversed(above) if line.strip()), "")
    match = _MARK.match(said.strip())
    return match[1] if match else ""


def _commands(lines: list[str]) -> Iterator[Command]:
    """Cut a block at its prompts; without any, each line is a command of its own."""
    if not _prompted(lines):
        yield from (Command(line) for line in lines if line.strip())
        return
    rest = list(lines)
    while rest:
        first = rest.pop(0)
        if not first.startswith(PROMPT):
            continue
        text = [first.removeprefix(PROMPT)]
        heredoc = _HEREDOC.search(first)
        while rest and (heredoc or text[-1].endswith("\\")):
            text.append(rest.pop(0))
            if heredoc and text[-1] == heredoc[1]:
                break
        expected = []
        while rest and not rest[0].startswith(PROMPT):
            expected.append(rest.pop(0))
        while expected and not expected[-1].strip():
            expected.pop()
        yield Command("\n".join(text), tuple(expected))


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/runbooks/*.md")])
BLOCKS = [(page, block) for page in PAGES for block in blocks(page.read_text())]
PATIENCE_SECONDS = 100.0

PAGE = """
<!-- run -->
```console
$ cat <<'END'
one
two
END
one
...
$ echo a \\
  b
a b
```

```sh
make test
```

```
no command
```
"""


def name_of(item: tuple[Path, Block]) -> str:
    return f"{item[0].relative_to(ROOT)}:{item[1].line}"


def marked(mark: str) -> list[tuple[Path, Block]]:
    return [item for item in BLOCKS if item[1].mark == mark]


def type_in(block: Block, folder: Path) -> None:
    """Run a block in one folder, as a person would who has just cloned the project into it."""
    for entry in (".venv", "deploy", "docs", "tests"):
        (folder / entry).symlink_to(ROOT / entry)
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.text],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

        assert 0 == done.returncode, f"{command.text}\n{done.stdout}"
        assert agrees(command.expected, done.stdout), f"{command.text}\n{done.stdout}"


@pytest.mark.parametrize("item", BLOCKS, ids=name_of)
def test_every_block_says_whether_it_is_run(item: tuple[Path, Block]) -> None:
    """A block of commands carries a mark that is known, and a reason where it is not run."""
    mark = item[1].mark

    assert mark == RUN or len(mark) > len(NOT_RUN)


@pytest.mark.parametrize("item", marked(RUN), ids=name_of)
def test_a_block_does_what_it_says(item: tuple[Path, Block], tmp_path: Path) -> None:
    """Each command ends well and prints what the page says."""
    type_in(item[1], tmp_path)


def test_a_block_is_cut_into_commands() -> None:
    """Here documents and continued lines belong to their command, the rest is output."""
    first, second = blocks(PAGE)

    assert first == Block(
        3,
        RUN,
        (
            Command("cat <<'END'\none\ntwo\nEND", ("one", "...")),
            Command("echo a \\\n  b", ("a b",)),
        ),
    )
    assert second == Block(15, "", (Command("make test"),))


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (("one", "..."), "one\ntwo\nthree\n", True),
        (("a ... c",), "a b  c\n", True),
        (("one",), "one\ntwo\n", False),
        ((), "anything", True),
    ],
)
def test_dots_stand_for_anything(expected: tuple[str, ...], printed: str, *, same: bool) -> None:
    """A page may leave out what differs from run to run, and nothing else."""
    assert same is agrees(expected, printed)


NOBODY = "http://127.0.0.1:9"  # where no API server is
COMMANDS = [
    line
    for line in every_command()
    if line.startswith("kubectl ")
    and not line.startswith(("kubectl gpufence ", "kubectl apply"))  # needs somebody's files
]


YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
WEBSITE = re.compile(r"website=(\S+)\]")


def kubectl(assets: Assets) -> Path:
    found = assets.find(KUBECTL)
    assert found
    return found


@pytest.mark.parametrize("line", COMMANDS)
def test_kubectl_understands_a_command(assets: Assets, line: str) -> None:
    """It gets as far as asking the API server."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'"$0" --server={NOBODY} {line.removeprefix("kubectl ")}',
            str(kubectl(assets)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "was refused" in done.stderr, done.stderr


def test_every_alert_can_be_led_to_another_website(assets: Assets, tmp_path: Path) -> None:
    """What the pages say to write into one's kustomization changes the address of each runbook."""
    (said,) = YAML.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    (website,) = WEBSITE.findall(said)
    component = os.path.relpath(COMPONENTS / "prometheus-operator", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(f"components: [{component}]\n{said}", "utf-8")
    done = subprocess.run(
        [kubectl(assets), "kustomize", tmp_path], capture_output=True, text=True, check=True
    )
    (rule,) = (item for item in yaml.safe_load_all(done.stdout) if item["kind"] == "PrometheusRule")
    rules = [each for group in rule["spec"]["groups"] for each in group["rules"]]

    assert sorted(f"{website}/docs/runbooks/{name}.md" for name in runbooks()) == sorted(
        each["annotations"]["runbook_url"] for each in rules
    )
