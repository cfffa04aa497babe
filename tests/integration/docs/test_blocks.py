"""Every command block of every page says whether it is run, and those that are do what they say."""

import subprocess
from pathlib import Path

import pytest

from tests.integration.docs.blocks import (
    NOT_RUN,
    RUN,
    Block,
    Command,
    agrees,
    blocks,
)

ROOT = Path(__file__).parents[3]
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
