"""
PURE. Where agents and controllers are that are no pods, or that the API server cannot reach, as
somebody wrote it: `NODE=URL`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpufence.errors import InvalidError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

WEB: Final = frozenset({"http", "https"})
_REMEDY: Final = "write where its status port is, such as http://10.0.0.7:8080"


def read_agents(items: Iterable[str], at: str, schemes: Collection[str] = WEB) -> dict[str, str]:
    """
    Read NODE=URL of each; `at` is where they were written.

    Raises:
        InvalidError: one of them cannot be read.
    """
    found = {}
    for item in items:
        node, separator, url = item.strip().partition("=")
        if not separator or not node:
            remedy = "write NODE=URL, such as gpu-1=http://10.0.0.7:8080"
            raise InvalidError(Problem(at, item, "names no node", remedy))
        found[node] = read_url(url, at, schemes)
    return found


def read_url(text: str, at: str, schemes: Collection[str] = WEB) -> str:
    """
    Read the address of a program's pages.

    Raises:
        InvalidError: it is none.
    """
    try:
        parts = urlsplit(text)
        readable = parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        readable = False
    if not readable:
        raise InvalidError(Problem(at, text, "is no address", _REMEDY))
    return text.rstrip("/")
