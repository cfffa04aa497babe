"""
The two applications, one for the API server, one for probes and Prometheus, in one event loop that
ends without losing a request.

Admissions are answered before FastAPI is asked, which serves every other path: on the way to a
handler of its own it takes as long as the whole rewriting of a pod, and to a middleware a quarter.
It is loaded where an application is made, while the API server writes the first lists: half of what
there is to load before a webhook can serve is its.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import uvicorn
import uvloop

from gpufence.mode import Mode
from service.exposition import CONTENT_TYPE
from service.listen import address_of
from webhook.endpoint import Endpoint
from webhook.guard import BoundedProtocol, Handshakes
from webhook.hooks import BindingHook, PodHook

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fastapi import FastAPI

    from webhook.cluster import ClusterView
    from webhook.endpoint import App, Hook
    from webhook.hooks import PodCheck
    from webhook.metrics import Account, Metrics
    from webhook.policy import WebhookPolicy

POD_PATHS = {mode: f"/v1/pods/{mode}" for mode in Mode}
BINDING_PATH = "/v1/bindings"
HEALTH_PATH, READY_PATH, METRICS_PATH = "/healthz", "/readyz", "/metrics"
HOOKS = (*(str(mode) for mode in Mode), "bindings")
_UNREADY = 503
# The API server keeps idle connections for 90 s. Were we to close one first, a request could meet
# the closing on its way, and the API server does not send it again.
KEEP_ALIVE_SECONDS = 150
LAST_ANSWERS_SECONDS = 5
BACKLOG = 1024
_COLLECT_SELDOM = (50_000, 20, 20)
_log = logging.getLogger(__name__)


def hooks_of(
    cluster: ClusterView, policy: WebhookPolicy, checks: Sequence[PodCheck] = ()
) -> dict[str, tuple[str, Hook]]:
    """Make every hook, by its path."""
    hooks: dict[str, tuple[str, Hook]] = {
        path: (str(mode), PodHook(mode, cluster, policy, checks))
        for mode, path in POD_PATHS.items()
    }
    hooks[BINDING_PATH] = ("bindings", BindingHook(cluster, policy))
    return hooks


def admission_app(
    hooks: Mapping[str, tuple[str, Hook]], account: Account, is_draining: Callable[[], bool]
) -> Endpoint:
    """Serve admissions, and nothing that would tell a stranger what we are."""
    return Endpoint(_silent_app(), hooks, account, is_draining)


def _silent_app() -> FastAPI:
    from fastapi import FastAPI  # noqa: PLC0415 (see above)

    return FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)


def status_app(metrics: Metrics, troubles: Callable[[], list[str]]) -> FastAPI:
    """Serve probes and metrics; ready means that the next admission gets a good answer."""
    from fastapi.responses import PlainTextResponse, Response  # noqa: PLC0415 (see above)

    app = _silent_app()

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


class Draining:
    """Whether the end has begun: readiness and every answer say so."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        self._begun = True

    def __call__(self) -> bool:
        return self._begun


class BoundApp:
    """One application on one socket."""

    def __init__(
        self, app: App, listener: socket.socket, context: ssl.SSLContext | None = None
    ) -> None:
        self.listener = listener
        self.server = _Server(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=LAST_ANSWERS_SECONDS,
            ),
            context,
        )

    @property
    def address(self) -> str:
        return address_of(self.listener)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._context is None:
            await super().startup(sockets)
            return
        await super().startup([])
        doors = [Handshakes(each, self._context, self._protocol) for each in sockets or ()]
        for each in doors:
            each.begin()
        self.servers = cast("list[asyncio.Server]", doors)

    def _protocol(self) -> BoundedProtocol:
        return BoundedProtocol(self.config, self.server_state, self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # two servers share the process: its signals are handled in one place, below


def serve(admission: BoundApp, status: BoundApp, draining: Draining, drain_seconds: float) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends the draining."""
    # What is there now stays, and reviews are trees that need no collector: it would only pause us.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_SELDOM)
    gc.enable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(admission, status, draining, drain_seconds))


async def _serve(
    admission: BoundApp, status: BoundApp, draining: Draining, drain_seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    signals: asyncio.Queue[str] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number.name)
    apps = (admission, status)
    tasks = [asyncio.create_task(each.server.serve([each.listener])) for each in apps]
    try:
        while not all(each.server.started for each in apps):
            if any(task.done() for task in tasks):
                return  # it failed; waiting for it below raises why
            await asyncio.sleep(0.01)
        _log.info(
            "serving",
            extra={"fields": {"listen": admission.address, "statusListen": status.address}},
        )
        name = await signals.get()
        draining.begin()
        _log.info("%s: serving for %g s more, not ready for new connections", name, drain_seconds)
        await _or_signal(signals, drain_seconds)
    finally:
        for each in apps:
            each.server.should_exit = True
        await asyncio.gather(*tasks)
    _log.info("ended")


async def _or_signal(signals: asyncio.Queue[str], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await signals.get()
    except TimeoutError:
        return
