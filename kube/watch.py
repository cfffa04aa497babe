"""
One collection's list and watch: the pace, the lines as they come, and how far we have come in it.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, cast

from gpufence.times import Backoff
from kube.errors import BadReplyError, GoneError, ServerError, SilenceError, UnreachableError
from kube.lists import collect_pages
from kube.replies import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from kube.client import Client
    from kube.replies import JsonObject
    from kube.transport import Stream

T = TypeVar("T")
ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """The pace of a reflector."""

    window_seconds: float = 240.0
    """The server is asked to end each watch after this long, up to a quarter more by chance."""

    silence_seconds: float = 75.0
    """
    No byte for this long ends a watch, for its connection may be half open; the next one tells.
    Bookmarks come about once a minute on a busy server, but on a quiet one (Kubernetes 1.37) the
    first was seen after two minutes: silence alone proves nothing.
    """

    settled_seconds: float = 1.0
    """
    A watch that ends sooner and delivered nothing counts as a failure, so that no loop runs hot.
    """

    line_limit_bytes: int = 16 * _MIB
    """Longest line believed; etcd takes objects of about 1.5 MiB."""

    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[T]):
    """
    A collection to follow, and what to remember of each object.

    `keep` sees every object once, right after it is read, and what it leaves out is never held.
    With `from_cache` the first list comes from the API server's memory, unpaged: cheap for the
    server when every node of a cluster asks at once.
    """

    path: str
    keep: Callable[[JsonObject], T]
    query: Mapping[str, str | int] = field(default_factory=dict)
    page_size: int = 100
    from_cache: bool = False


class Feed(Generic[T]):
    """Reads a source; `version` is where a watch would continue, None when only a list will do."""

    def __init__(self, client: Client, source: Source[T], settings: WatchSettings) -> None:
        self._client = client
        self._source = source
        self._settings = settings
        self._newest_seen: str | None = None
        self.version: str | None = None

    def read_all(self) -> list[T]:
        """Read the whole collection, and set `version` to its moment."""
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
        source = self._source
        listing = collect_pages(
            lambda asked: self._client.page(source.path, source.keep, asked),
            source.path,
            query,
            page_size,
        )
        self.version = self._newest_seen = listing.resource_version
        return listing.items


@dataclass(frozen=True, slots=True)
class Change:
    """
    One line of a watch: what happened to an object; type None is a bookmark, which only says how
    far the watch has come.
    """

    type: ChangeType | None
    resource_version: str
    object: JsonObject


def read_change(request: str, line: bytes) -> Change:
    """
    Read one line.

    Raises the ReplyError of an ERROR line, and BadReplyError for anything that is no line of a
    watch: after that the only honest thing is to list again.
    """
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadReplyError(f"{request}: a line of the watch is no JSON: {error}") from error
    kind = event.get("type") if isinstance(event, dict) else None
    content = event.get("object") if isinstance(event, dict) else None
    if not isinstance(content, dict):
        raise BadReplyError(f"{request}: a line of the watch has no object")
    if kind == "ERROR":
        raise status_error(request, content)
    metadata = content.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not version:
        raise BadReplyError(f"{request}: an object of the watch has no metadata.resourceVersion")
    if kind == "BOOKMARK":
        return Change(None, version, content)
    if kind not in _TYPES:
        raise BadReplyError(f"{request}: the watch speaks of {kind!r}, which is no known change")
    return Change(cast("ChangeType", kind), version, content)


class LineTooLongError(ValueError):
    """Raised when a line passes the limit: no object of Kubernetes is that large."""


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
            self._rest += part
            lines.append(bytes(self._rest))
            self._rest.clear()
        self._rest += last
        if max(map(len, [*lines, self._rest])) > self._limit_bytes:
            raise LineTooLongError(f"a line is longer than {self._limit_bytes} bytes")
        return [line for line in lines if line.strip()]

    @property
    def rest(self) -> bytes:
        """What came after the last line end: a stream that ends here ended in mid-line."""
        return bytes(self._rest)


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
