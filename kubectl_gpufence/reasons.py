"""Errors as sentences: why an agent says nothing, and what to do about what ends a call."""

from __future__ import annotations

from gpufence.errors import GpufenceError, InvalidError, UnknownVersionError
from gpufence.names import SYSTEM_NAMESPACE
from gpufence.text import printable
from kube import ForbiddenError, NotFoundError, ReplyError, ServerError, UnreachableError

_MAY_NOT_PROXY = f"you may not ask agents: Role gpufence-viewer in {SYSTEM_NAMESPACE} allows it"


def silence_reason(error: GpufenceError) -> str:
    """Return why an agent gave no snapshot, so that equal reasons read alike."""
    match error:
        case ForbiddenError():
            return _MAY_NOT_PROXY
        case NotFoundError():
            return "its pod is gone, or knows no snapshots"
        case ServerError():
            return f"it does not answer: {printable(error.failure.message)}"
        case ReplyError():
            return f"it refuses: {error.status} {printable(error.failure.message)}"
        case UnreachableError():
            return "it does not answer in time"
        case UnknownVersionError():
            return "it is newer than this plugin: upgrade the plugin"
        case InvalidError():
            return f"its answer is no snapshot: {printable(str(error))}"
        case _:
            return printable(str(error))


def advice(error: GpufenceError) -> str:
    """Return an error that ends the call, and what to do where the error does not say it itself."""
    text = printable(str(error))
    match error:
        case ForbiddenError():
            return f"{text}; ask your administrator, or name a namespace of yours with -n"
        case UnreachableError():
            return f"{text}; `kubectl version` shows whether the cluster can be reached"
        case _:
            return text
