"""
One collection's list and watch, and how far we have come in it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from kube.changes import ChangeType, read_change
from kube.errors import BadReplyError, GoneError, ServerError, SilenceError, UnreachableError
from kube.lines import LineCutter, LineTooLongError
from kube.listing import collect

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from kube.client import Client
    from kube.objects import JsonObject
    from kube.settings import WatchSettings
    from kube.transport import Stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[T]):
    """
    A collection to follow, and what to remember of each object.

    `keep` sees every object once, right after it is read, and what it leaves out is never held.
    Pages bound the memory of a list: 5,000 nodes of 14 KB cost 11 MiB at 100 a page, 48 at 500.
    With `from_cache` the first list comes from the API server's memory, unpaged: cheap for the
    server when every node of a cluster asks at once, and right for collections that are small.
    """

    path: str
    keep: Callable[[JsonObject], T]
    query: Mapping[str, str | int] = field(default_factory=dict)
    page_size: int = 100
    from_cache: bool = False


class Feed(Generic[T]):
    """
    Reads a source; `version` is where a watch would continue, None when only a list will do.
    """

    def __init__(self, client: Client, source: Source[T], settings: WatchSettings) -> None:
        self._client = client
        self._source = source
        self._settings = settings
        self._newest_seen: str | None = None
        self.version: str | None = None

    def read_all(self) -> list[T]:
        """
        Read the whole collection, and set `version` to its moment.
        """
        source = self._source
        if source.from_cache:
            # Not older than what we have seen: another server's cache may lag behind it.
            cached = {
                **source.query,
                "resourceVersion": self._newest_seen or "0",
                "resourceVersionMatch": "NotOlderThan",
            }
            try:
                return self._collect(cached, 0)
            except GoneError:
                pass
            except ServerError as error:
                if not _is_version_too_large(error):
                    raise
        return self._collect(source.query, source.page_size)

    def watch(
        self, chance: float, on_bytes: Callable[[], None]
    ) -> Generator[tuple[ChangeType, T] | None, None, None]:
        """
        Yield changes after `version`, None for a bookmark, until the watch ends or falls silent.

        `version` moves on when the next change is asked for: what the caller did not finish comes
        again. `chance` in [0, 1) spreads the watch's length; `on_bytes` hears every sign of life.
        """
        settings, source = self._settings, self._source
        query = {
            **source.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version or "",
            "timeoutSeconds": max(1, int(settings.window_seconds * (1 + chance / 4))),
        }
        request = f"GET {source.path}"
        cutter = LineCutter(settings.line_limit_bytes)
        stream = self._client.stream(source.path, query, silence_seconds=settings.silence_seconds)
        on_bytes()
        with closing(stream):
            for chunk in _until_silence(stream):
                on_bytes()
                for line in _lines(request, cutter, chunk):
                    change = read_change(request, line)
                    yield (
                        None
                        if change.type is None
                        else (
                            change.type,
                            source.keep(change.object),
                        )
                    )
                    self.version = self._newest_seen = change.resource_version
        if cutter.rest:
            raise UnreachableError(f"{request}: the watch ended in the middle of a line")

    def _collect(self, query: Mapping[str, str | int], page_size: int) -> list[T]:
        listing = collect(self._client.get, self._source.path, self._source.keep, query, page_size)
        self.version = self._newest_seen = listing.resource_version
        return listing.items


def _until_silence(stream: Stream) -> Generator[bytes, None, None]:
    # Silence is no error yet: where nothing changes, bookmarks may be minutes apart too. Opening
    # the next watch tells whether somebody is still there.
    try:
        yield from stream.chunks()
    except SilenceError:
        return


def _lines(request: str, cutter: LineCutter, chunk: bytes) -> list[bytes]:
    try:
        return cutter.feed(chunk)
    except LineTooLongError as error:
        raise BadReplyError(f"{request}: {error}") from error


def _is_version_too_large(error: ServerError) -> bool:
    # After etcd came back from a backup, versions are smaller than the ones we know.
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
