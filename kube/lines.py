"""
PURE. Cut a stream of bytes into lines, wherever the network happened to cut it.
"""

from __future__ import annotations


class LineTooLongError(ValueError):
    """
    Raised when a line passes the limit: no object of Kubernetes is that large.
    """


class LineCutter:
    """
    Collect chunks and give back whole lines, never holding more than the limit.

    Lines stay bytes: a chunk may end in the middle of a character.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """
        Add a chunk and take out the lines it completes, blank ones left out.

        Raises LineTooLongError when what is still without an end passes the limit.
        """
        *whole, last = chunk.split(b"\n")
        lines = []
        for part in whole:
            lines.append(bytes(self._rest + part))
            self._rest.clear()
        self._rest += last
        if max(map(len, [*lines, self._rest])) > self._limit_bytes:
            raise LineTooLongError(f"a line is longer than {self._limit_bytes} bytes")
        return [line for line in lines if line.strip()]

    @property
    def rest(self) -> bytes:
        """
        What came after the last line end: a stream that ends here ended in mid-line.
        """
        return bytes(self._rest)
