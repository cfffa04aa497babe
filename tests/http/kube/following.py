"""Reflectors under test: started, stopped, and with everything that a test leaves out."""

from collections.abc import Iterator
from contextlib import contextmanager

from kube import JsonObject, Reflector, Source, WatchSettings
from tests.http.kube.builders import PODS, WATCHING, client_of
from tests.http.kube.fakes import FakeClock, Recorder
from tests.support.api_server import ApiServer

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
