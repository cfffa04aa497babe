"""
PURE. Lists without `metadata.managedFields`: who wrote what, which is a third of a pod's text and
two thirds of the work to read it, and which nobody here asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Inside of a JSON string each quote has a backslash before it, so that this is never part of one.
_BEGIN: Final = b',"managedFields":['
_LONGEST_STRING_BYTES: Final = 16 * 2**20


def unmanaged(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Leave out of each object the list of its managers, wherever a chunk may end."""
    rest = b""
    managers: _Managers | None = None
    for chunk in chunks:
        rest += chunk
        pieces = []
        while managers is not None or _BEGIN in rest:
            if managers is None:
                before, _, rest = rest.partition(_BEGIN)
                pieces.append(before)
                managers = _Managers()
            rest = rest[managers.read(rest) :]
            if managers.depth:
                break
            managers = None
        if managers is None:
            at = max(len(rest) - len(_BEGIN) + 1, 0)
            pieces.append(rest[:at])
            rest = rest[at:]
        elif len(rest) > _LONGEST_STRING_BYTES:
            return
        if left := b"".join(pieces):
            yield left
    if managers is None and rest:
        yield rest


class _Managers:
    """A list of managers that is passed over: how many lists are open, and whether a string is."""

    def __init__(self) -> None:
        self.depth = 1
        self._quoted = False

    def read(self, text: bytes) -> int:
        """Read up to the end, or as far as it can be known, and return how far that is."""
        at = 0
        while self.depth and (found := text.find(b"]", at)) >= 0:
            self._pass(text[at:found])
            at = found + 1
            if not self._quoted:
                self.depth -= 1
        return at

    def _pass(self, piece: bytes) -> None:
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        if b"[" in piece:
            outside = piece.split(b'"')[self._quoted :: 2]
            self.depth += sum(part.count(b"[") for part in outside)
        self._quoted ^= bool(piece.count(b'"') % 2)
