"""What a release is made from: the commit, when it was made, and where its repository is."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.release.archive import ReleaseError

ROOT: Final = Path(__file__).resolve().parents[2]
_SHORT_ADDRESS = re.compile(
    r"(?:[^@/:]+@)?([^@/:]+\.[^@/:]+):(?!/)(.+)"
)  # git@host.name:owner/name
_ADDRESS = re.compile(r"(https|ssh)://(?:[^@/]+@)?([^/].*)")


@dataclass(frozen=True, slots=True)
class Source:
    """The sources of a release; where nobody knows repository or commit, those are empty."""

    moment: int
    commit: str = ""
    repository: str = ""
    uncommitted: int = 0


def read_source(repository: str = "") -> Source:
    """
    Ask git about the sources; the repository is what is named, else where they were cloned from.

    Raises ReleaseError where nobody knows when they were made.
    """
    return Source(
        moment=source_moment(),
        commit=_git("rev-parse", "HEAD"),
        repository=repository or public_address(_git("config", "remote.origin.url")),
        uncommitted=len(_git("status", "--porcelain").splitlines()),
    )


def source_moment() -> int:
    """
    Return SOURCE_DATE_EPOCH, or else when the sources were committed.

    Raises ReleaseError where neither is known.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    if not text.isdecimal():
        raise ReleaseError(
            f"SOURCE_DATE_EPOCH {text!r} is no number of seconds and git knows no commit; "
            "remedy: SOURCE_DATE_EPOCH=seconds make release"
        )
    return int(text)


def public_address(remote: str) -> str:
    """
    Return a clone's origin as others may read it: without a user or his token, and no mere folder.
    """
    if short := _SHORT_ADDRESS.fullmatch(remote):
        return f"git+ssh://{short[1]}/{short[2]}"
    if address := _ADDRESS.fullmatch(remote):
        return f"git+{address[1]}://{address[2]}"
    return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
