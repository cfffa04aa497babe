"""
The two applications: one for the API server, one for probes and Prometheus.

Admissions are answered before FastAPI is asked, which serves every other path: on the way to a
handler of its own it takes as long as the whole rewriting of a pod, and to a middleware a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from gpufence.exposition import CONTENT_TYPE
from gpufence.mode import Mode
from webhook.bindings import BindingHook
from webhook.endpoint import Endpoint
from webhook.pods import PodHook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.cluster import ClusterView
    from webhook.endpoint import Hook
    from webhook.metrics import Account, Metrics
    from webhook.policy import WebhookPolicy

POD_PATHS = {mode: f"/v1/pods/{mode}" for mode in Mode}
BINDING_PATH = "/v1/bindings"
HEALTH_PATH, READY_PATH, METRICS_PATH = "/healthz", "/readyz", "/metrics"
HOOKS = (*(str(mode) for mode in Mode), "bindings")
_UNREADY = 503


class _Silent(TypedDict):
    docs_url: None
    redoc_url: None
    openapi_url: None
    redirect_slashes: bool


_SILENT: _Silent = {
    "docs_url": None,
    "redoc_url": None,
    "openapi_url": None,
    "redirect_slashes": False,
}


def hooks_of(cluster: ClusterView, policy: WebhookPolicy) -> dict[str, tuple[str, Hook]]:
    """
    Make every hook, by its path.
    """
    hooks: dict[str, tuple[str, Hook]] = {
        path: (str(mode), PodHook(mode, cluster, policy)) for mode, path in POD_PATHS.items()
    }
    hooks[BINDING_PATH] = ("bindings", BindingHook(cluster, policy))
    return hooks


def admission_app(
    hooks: Mapping[str, tuple[str, Hook]], account: Account, is_draining: Callable[[], bool]
) -> Endpoint:
    """
    Serve admissions, and nothing that would tell a stranger what we are.
    """
    return Endpoint(FastAPI(**_SILENT), hooks, account, is_draining)


def status_app(metrics: Metrics, troubles: Callable[[], list[str]]) -> FastAPI:
    """
    Serve probes and metrics; ready means that the next admission gets a good answer.
    """
    app = FastAPI(**_SILENT)

    @app.get(HEALTH_PATH, response_class=PlainTextResponse)
    async def health() -> str:
        return "ok\n"

    @app.get(READY_PATH)
    async def ready() -> Response:
        found = troubles()
        text = "".join(f"{trouble}\n" for trouble in found) or "ok\n"
        return PlainTextResponse(text, _UNREADY if found else 200)

    @app.get(METRICS_PATH)
    async def page() -> Response:
        return Response(metrics.page(), media_type=CONTENT_TYPE)

    return app
