"""
PURE. Read the lines of a watch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from kube.errors import BadReplyError
from kube.replies import status_error

if TYPE_CHECKING:
    from kube.objects import JsonObject

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED"})


@dataclass(frozen=True, slots=True)
class Change:
    """
    One line of a watch: what happened to an object; type None is a bookmark, news of time only.
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
