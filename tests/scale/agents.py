"""
`python -m tests.scale.agents ADDRESS NODES PODS SILENT`: one program that answers as the agents of
all nodes do, but for those that take the question and say nothing.

All of them have one address and one port: the API server's proxy says whose page it wants. Each
answer ends its connection, as an agent's does, so that the API server connects for every question.
"""

import asyncio
import re
import sys
from typing import Final

from gpufence.quantity import GIB, MIB
from gpufence.snapshot import (
    CUTS,
    ActivityRow,
    CardRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
    write_snapshot,
)
from tests.scale import objects, size
from tests.scale.size import Size

_LIMIT: Final = objects.UNITS * GIB
_ALLOWED: Final = 2150 * MIB
_PART: Final = re.compile(rb"\S+ /v1/snapshot\?only=(\S+) ")
_WHOSE: Final = re.compile(rb"x-forwarded-uri: \S*/gpufence-agent-(\d+)", re.IGNORECASE)
_STARTED: Final = "2026-01-02T00:00:00Z"


def snapshot(number: int, wanted: Size) -> Snapshot:
    """Return what an agent with work on every card would answer."""
    pods = wanted.pods_of_node(number)
    return Snapshot(
        node=size.node_name(number),
        version="0.1.0",
        at=_STARTED,
        started=_STARTED,
        driver="580.95.05",
        highest="evict",
        fresh=True,
        stale_seconds=0.4,
        cards=tuple(_card(number, index, len(pods)) for index in range(size.CARDS)),
        pods=tuple(_pod(pod, number) for pod in pods),
        cap_slack_bytes=256 * MIB,
    )


def _card(number: int, index: int, pods: int) -> CardRow:
    uuid = size.card_uuid(number, index)
    used = 2 * GIB * -(-pods // size.CARDS)
    return CardRow(uuid, index, "Tesla T4", 15 * GIB, used, 15 * GIB - used, 0, used, 0, 1.5)


def _pod(pod: int, node: int) -> PodRow:
    uuid, owner = size.card_uuid(node, pod // 8 % size.CARDS), size.owner_of(pod)
    processes = (ProcessRow(1000 + pod % 7919, 2 * GIB, size.deployment_name(owner)),)
    busy = ActivityRow("busy", 0.0, "Kernels")
    use = UseRow(uuid, 2 * GIB, _LIMIT, _ALLOWED, "within", 0.0, None, processes, busy)
    return PodRow(
        size.uid("pod", pod),
        size.team_of(owner),
        size.pod_name(pod, owner),
        "evict",
        f"ReplicaSet/{size.replica_set_name(owner)}",
        uses=(use,),
        activity=PodActivityRow("busy", 0.0, "Kernels", busy_share=0.75),
    )


def _pages(said: Snapshot) -> dict[str, bytes]:
    """Write all that an agent says, and each part of it."""
    parts = {cut.name: write_snapshot(said, cut).encode() for cut in CUTS}
    return {"": write_snapshot(said).encode(), **parts}


class PlayedAgents:
    """Answers whoever asks."""

    def __init__(self, wanted: Size) -> None:
        self._size = wanted
        # Made once: what answering takes is not measured here.
        self._pages = [_pages(snapshot(node, wanted)) for node in range(wanted.nodes)]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            whose = _WHOSE.search(head)
            number = int(whose[1]) if whose else -1
            if 0 <= number < self._size.nodes and self._size.is_silent(number):
                await reader.read()  # until they have had enough
                return
            part = _PART.match(head)
            writer.write(self._reply(number, part[1].decode() if part else ""))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _reply(self, number: int, part: str) -> bytes:
        if not 0 <= number < self._size.nodes:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        pages = self._pages[number]
        body = pages.get(part, pages[""])
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body


async def serve(address: str, wanted: Size) -> None:
    """Say on which port, then answer until ended."""
    server = await asyncio.start_server(PlayedAgents(wanted).answer, address, 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    where, *figures = sys.argv[1:]
    nodes, pods, silent = map(int, figures)
    asyncio.run(serve(where, Size(nodes=nodes, pods=pods, silent=silent)))
