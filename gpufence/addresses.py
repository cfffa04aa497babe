"""
PURE. Where agents and controllers are that are no pods, or that the API server cannot reach, as
somebody wrote it: `NODE=URL`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpufence.errors import InvalidError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

WEB: Final = frozenset({"http", "https"})
_NODE: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_URL: Final = re.compile(r"[!\"$->A-~]+")  # no blank, and none of # ? @
_PRIVATE: Final = re.compile(r"//.*@", re.DOTALL)
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
        if not separator or not _NODE.fullmatch(node):
            remedy = "write NODE=URL, such as gpu-1=http://10.0.0.7:8080"
            raise InvalidError(Problem(at, _public(item), "names no node", remedy))
        if node in found:
            raise InvalidError(Problem(at, node, "is named twice", "name each node once"))
        found[node] = read_url(url, at, schemes)
    return found


def read_url(text: str, at: str, schemes: Collection[str] = WEB) -> str:
    """
    Read the address of a program's pages.

    Raises:
        InvalidError: it is none.
    """
    if not _is_readable(text, schemes):
        raise InvalidError(Problem(at, _public(text), "is no address", _REMEDY))
    return text.rstrip("/")


def _is_readable(text: str, schemes: Collection[str]) -> bool:
    """
    Return whether pages can be asked for below an address. Nobody is logged in to, so a name and a
    password before an @ would be for nothing.
    """
    try:
        parts = urlsplit(text)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return False
    plain = _URL.fullmatch(text) is not None and "," not in parts.netloc
    return parts.scheme in schemes and bool(parts.hostname) and port_is_one and plain


def _public(text: str) -> str:
    return _PRIVATE.sub("//...@", text)
