"""
PURE. Lists without `metadata.managedFields`: who wrote what, which is a third of a pod's text and
two thirds of the work to read it, and which nobody here asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Inside of a JSON string each quote has a backslash before it, so that neither can be part of one:
# after the quote that ends a string comes no letter. Nothing in managedFields is a list.
_BEGIN: Final = b',"managedFields":[{'
_END: Final = b'}]},"'
_LETTERS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz")


def unmanaged(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """
    Leave out of each object the fields of its managers, wherever a chunk may end.
    """
    rest, inside = b"", False
    for chunk in chunks:
        rest += chunk
        pieces = []
        while (at := _end(rest) if inside else rest.find(_BEGIN)) >= 0:
            if not inside:
                pieces.append(rest[:at])
            rest = rest[at + (_SKIPPED if inside else len(_BEGIN)) :]
            inside = not inside
        kept = len(_END) if inside else len(_BEGIN) - 1
        at = max(len(rest) - kept, 0)
        if not inside:
            pieces.append(rest[:at])
        rest = rest[at:]
        if found := b"".join(pieces):
            yield found
    if rest and not inside:
        yield rest


_SKIPPED: Final = 2  # of _END: what closes the last manager and the list of them


def _end(text: bytes) -> int:
    """
    Find where the fields of managers end; -1 where that is not there.
    """
    at = text.find(_END)
    while at >= 0 and at + len(_END) < len(text) and text[at + len(_END)] not in _LETTERS:
        at = text.find(_END, at + 1)
    return at if at + len(_END) < len(text) else -1
