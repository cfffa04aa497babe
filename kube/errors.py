"""
PURE. What can go wrong between us and an API server, one class per reaction of the caller.

    GpufenceError
      KubeError
        AccessError            no way to a cluster is configured, or it is unreadable: a person acts
        UnreachableError       no answer, or half of one: try again; the request may have been done
          SilenceError         an open stream on which nothing came for too long: open it again
        BadReplyError          an answer, but not from a Kubernetes API server: try again, then look
        ReplyError             the API server refused; its Status is carried along
          NotFoundError        404: the object is gone, or was never there
          ConflictError        409: read again, then decide again
          GoneError            410: the list or version is too old; list again
          ThrottledError       429: later; for evictions, a disruption budget
          ForbiddenError       401, 403: credentials or RBAC; waiting alone does not help
          InvalidRequestError  any other 4xx: our own mistake, never worth a retry
          ServerError          5xx: try again later
            TooLargeError      etcd takes no object of that size: ask for what writes less into it

No message holds a token: requests are named by method and path only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from kube.replies import JsonObject


class KubeError(GpufenceError):
    """Anything that talking to an API server may raise."""


class AccessError(KubeError):
    """Raised before the first request, where the server or the identity to ask by is unclear."""


class UnreachableError(KubeError):
    """Raised when no complete answer arrived; whether the server acted is unknown."""


class SilenceError(UnreachableError):
    """Raised when nothing came for too long on a stream that was open; the server may be well."""


class BadReplyError(KubeError):
    """Raised when the answer cannot be an API server's: a proxy's page, a redirect, broken JSON."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' details.causes, such as the disruption budget behind a 429."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The server's own account of a refusal."""

    request: str
    status: int
    reason: str
    message: str
    retry_after_seconds: float | None = None
    details: JsonObject = field(default_factory=dict)


class ReplyError(KubeError):
    """Raised when the API server itself answered, and the answer is no."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"{failure.request}: {failure.status} {failure.reason}: {failure.message}")

    @property
    def status(self) -> int:
        return self.failure.status

    @property
    def reason(self) -> str:
        return self.failure.reason

    @property
    def retry_after_seconds(self) -> float | None:
        """How long the server asks to wait, or None where it does not say."""
        return self.failure.retry_after_seconds

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The reasons below the reason; evictions name the disruption budget here."""
        listed = self.failure.details.get("causes")
        return tuple(
            Cause(str(cause.get("reason", "")), str(cause.get("message", "")))
            for cause in (listed if isinstance(listed, list) else [])
            if isinstance(cause, dict)
        )


class NotFoundError(ReplyError):
    pass


class ConflictError(ReplyError):
    pass


class GoneError(ReplyError):
    pass


class ThrottledError(ReplyError):
    pass


class ForbiddenError(ReplyError):
    pass


class InvalidRequestError(ReplyError):
    pass


class ServerError(ReplyError):
    pass


class TooLargeError(ServerError):
    """Raised when the object would be larger than etcd takes: asking again does not help."""


_BY_STATUS: dict[int, type[ReplyError]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: ThrottledError,
}
_FIRST_SERVER_STATUS = 500
_TOO_LARGE = ("request is too large", "message larger than max")  # etcd's words, and gRPC's


def error_for(failure: Failure) -> ReplyError:
    """Choose the class by HTTP status, the one thing every refusal has; etcd's has only words."""
    if failure.status < _FIRST_SERVER_STATUS:
        return _BY_STATUS.get(failure.status, InvalidRequestError)(failure)
    too_large = any(words in failure.message for words in _TOO_LARGE)
    return (TooLargeError if too_large else ServerError)(failure)
