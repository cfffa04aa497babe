"""
Pass connections from a listening socket to an address, from one network into another.

    python -I -S forward.py LISTENING_DESCRIPTOR HOST PORT

A socket belongs to the network in which it was made, whoever uses it later. So a socket made
outside a network namespace, handed to this program inside it, lets the outside in. It ends when its
standard input does, that is with whoever holds the other end.

This file runs by itself, without the packages around it.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

CHUNK_BYTES = 1 << 16

SCRIPT = Path(__file__).resolve()


async def pass_on(listening: socket.socket, host: str, port: int) -> None:
    """Serve until standard input ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled only at the end. asyncio would complain of a task that ends so.
        with suppress(asyncio.CancelledError):
            await _connect(reader, writer, host, port)

    server = await asyncio.start_server(serve, sock=listening)
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


async def _connect(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    try:
        behind, ahead = await asyncio.open_connection(host, port)
    except OSError:
        _reset(writer)
        return
    await asyncio.gather(_copy(reader, ahead), _copy(behind, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()
        if reader.exception() is not None:
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection off, so that nobody takes it for a conversation that came to its end."""
    at_once = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.transport.abort()


def main(argv: Sequence[str]) -> int:
    """Forward for as long as somebody holds our standard input."""
    descriptor, host, port = argv
    listening = socket.socket(fileno=int(descriptor))
    listening.settimeout(0)
    with suppress(KeyboardInterrupt):
        asyncio.run(pass_on(listening, host, int(port)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
