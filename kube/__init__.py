"""
The one place that knows the Kubernetes client: raw JSON requests, lists, watches, typed errors.

Inside a pod it stands on urllib3 alone, a process of 24 MiB; the `kubernetes` package, any part of
which makes that 44 MiB, is loaded only to read a kubeconfig. What watches is imported from
kube.watch and kube.informers: a program at a desk only asks, and starts 10 ms sooner without them.
"""

from kube.access import ClientSettings, read_client_settings
from kube.client import Client, PatchType, connect
from kube.errors import (
    AccessError,
    BadReplyError,
    Cause,
    ConflictError,
    Failure,
    ForbiddenError,
    GoneError,
    InvalidRequestError,
    KubeError,
    NotFoundError,
    ReplyError,
    ServerError,
    SilenceError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)
from kube.kinds import core, group
from kube.lists import Listing, as_is
from kube.replies import JsonObject
from kube.transport import fetch_page

__all__ = [
    "AccessError",
    "BadReplyError",
    "Cause",
    "Client",
    "ClientSettings",
    "ConflictError",
    "Failure",
    "ForbiddenError",
    "GoneError",
    "InvalidRequestError",
    "JsonObject",
    "KubeError",
    "Listing",
    "NotFoundError",
    "PatchType",
    "ReplyError",
    "ServerError",
    "SilenceError",
    "ThrottledError",
    "TooLargeError",
    "UnreachableError",
    "as_is",
    "connect",
    "core",
    "fetch_page",
    "group",
    "read_client_settings",
]
