"""Files of what was reviewed, and how one is written anew after a change on purpose."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

WRITE = os.environ.get("GPUFENCE_GOLDEN") == "write"


def assert_reviewed(file: Path, shown: str) -> None:
    """Compare with what was reviewed; the failure says how the file is written anew."""
    if WRITE:
        file.write_text(shown, encoding="utf-8")
    anew = "on purpose? GPUFENCE_GOLDEN=write in front of the call writes it anew: read `git diff`"

    assert file.read_text(encoding="utf-8") == shown, f"{file.name} is not what is shown; {anew}"


def assert_cases(file: Path, cases: Mapping[str, Iterable[str]]) -> None:
    """Compare what each case shows with a file in which it stands below its title."""
    lines = [line for title, shown in cases.items() for line in (title, *shown, "")]
    assert_reviewed(file, "".join(f"{line}\n" for line in lines))


def changed(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return what is said in place of what was said before."""
    old, new = list(before), list(after)
    gone = [f"  - {line}" for line in old if line not in new]
    return [*gone, *(f"  + {line}" for line in new if line not in old)]


def leaves(value: Any, path: str = " ") -> Iterator[str]:
    """Write a document, or named values in each other, as a line for each value in it."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, frozenset | set):
        value = sorted(value)
    elif isinstance(value, Mapping):
        value = dict(value)
    if isinstance(value, dict | list | tuple) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from leaves(item, f"{path} {key}")
    else:
        yield f"{path}: {json.dumps(value)}"
