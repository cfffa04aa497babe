"""Objects and answers as an API server makes them, and clients for it."""

from dataclasses import replace

from gpufence.backoff import Backoff
from kube import Client, ClientSettings, JsonObject, WatchSettings, connect
from tests.support.api_server import ApiServer

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
