"""
Reflectors under test: started, stopped, and with everything that a test leaves out.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kube import Reflector, Source
from tests.http.kube.builders import PODS, WATCHING, client_of
from tests.http.kube.fakes import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kube import JsonObject, WatchSettings
    from tests.http.kube.fakes import Recorder
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
