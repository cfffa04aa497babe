"""What tests of clients need: objects, answers, watches, clocks, servers that drip or tunnel."""

import math
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gpufence.times import Backoff
from kube import Client, ClientSettings, JsonObject, connect
from kube.informers.reflector import Reflector
from kube.watch import ChangeType, Source, WatchSettings
from tests.support.servers import PATIENCE_SECONDS, ApiServer, Exchange, HttpServer

PODS = "/api/v1/pods"

# Long enough for a busy machine: whoever is about a wait says a short one, and is judged by these.
SETTINGS = ClientSettings(connect_timeout_seconds=60.0, reply_timeout_seconds=60.0)
AT_ONCE_SECONDS = SETTINGS.reply_timeout_seconds / 2
WATCHING = WatchSettings(
    silence_seconds=60.0, settled_seconds=0.0, backoff=Backoff(first_seconds=0.5)
)


def client_of(server: ApiServer, settings: ClientSettings = SETTINGS) -> Client:
    return connect(replace(settings, server=server.url))


def pod(name: str, version: str = "1", **more: object) -> JsonObject:
    return {"metadata": {"name": name, "resourceVersion": version}, **more}


def pods(*items: JsonObject, version: str = "10", token: str = "") -> JsonObject:
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def change(kind: str, item: JsonObject) -> JsonObject:
    return {"type": kind, "object": item}


def bookmark(version: str) -> JsonObject:
    return change("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


def status(code: int, reason: str, message: str = "no", **details: object) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        **({"details": details} if details else {}),
    }


def gone() -> JsonObject:
    return status(410, "Expired", "too old resource version: 10 (99)")


class Dripping(HttpServer):
    """Sends its answer byte by byte, each in time, from its head or its body on."""

    def __init__(self, headers: Mapping[str, str], *, head: bool) -> None:
        super().__init__()
        self._headers = headers
        self._head = head

    def handle(self, exchange: Exchange) -> None:
        if self._head:
            exchange.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        else:
            exchange.send_head(200, self._headers)
        while not self.over.wait(0.05):
            exchange.wfile.write(b"a")
            exchange.wfile.flush()


class Recorder:
    """Notes every call as a pair: ("replace", names) or (change, name)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        self._changed = threading.Condition()

    def replace(self, objects: Sequence[str]) -> None:
        self._note(("replace", list(objects)))

    def apply(self, change: ChangeType, item: str) -> None:
        self._note((change, item))

    def wait_for(self, count: int) -> list[tuple[str, object]]:
        """Wait for so many calls and give back all of them."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.calls) >= count, PATIENCE_SECONDS)
            assert enough, f"only {self.calls} came"
            return list(self.calls)

    def _note(self, call: tuple[str, object]) -> None:
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()


class FakeClock:
    """
    Time that passes only by waiting, at once; a wait without bound is a real one, and after
    `pauses` waits it rests until stopped.
    """

    def __init__(self, pauses: int = 1000) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []
        self._left = pauses
        self.rested = threading.Event()

    def monotonic(self) -> float:
        return self.now

    def chance(self) -> float:
        return 0.0

    def wait(self, stop: threading.Event, seconds: float) -> None:
        if seconds == math.inf:
            stop.wait(PATIENCE_SECONDS)
            return
        self.pauses.append(seconds)
        self.now += seconds
        self._left -= 1
        if self._left <= 0:
            self.rested.set()
            stop.wait(PATIENCE_SECONDS)


LIST = f"GET {PODS}"
WATCH = f"WATCH {PODS}"


def name_of(item: JsonObject) -> str:
    return str(item["metadata"]["name"])


@contextmanager
def following(
    server: ApiServer,
    handler: Recorder,
    *,
    settings: WatchSettings = WATCHING,
    clock: FakeClock | None = None,
    source: Source[str] | None = None,
) -> Iterator[Reflector[str]]:
    reflector = Reflector(
        client_of(server),
        source or Source(path=PODS, keep=name_of),
        handler,
        settings,
        clock or FakeClock(),
    )
    reflector.start()
    try:
        yield reflector
    finally:
        reflector.stop()


_CHUNK_BYTES = 65_536


def tunnel(exchange: Exchange) -> None:
    """Answer a CONNECT; whatever host it names, the bytes lead to that port of this machine."""
    port = int(exchange.path.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as upstream:
        exchange.send_head(200, {})
        back = threading.Thread(target=_pump, args=(upstream, exchange.connection), daemon=True)
        back.start()
        _pump(exchange.connection, upstream)
        back.join(5)
    exchange.close_connection = True


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
