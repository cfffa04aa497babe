"""What a large cluster asks of webhook, agents and plugin, and how long that takes."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from gpufence import names
from simulator.progress import Progress
from tests.scale.programs import Call, Program, plugin
from tests.scale.stage import Stage
from tests.support.observing import Figure, at_most, percentile
from tests.support.processes import LOOPBACK
from tests.support.site import surroundings

# By the most seconds and MiB each may take, where that is promised.
_CALLS: Final = (
    (("top", "nodes"), 6.0, 200.0),
    (("top", "-A"), 15.0, None),
    (("doctor",), None, None),
)


def measure_plugin(stage: Stage, progress: Progress) -> list[Figure]:
    """Call each verb once."""
    figures: list[Figure] = []
    for arguments, seconds, mib in _CALLS:
        what = " ".join(arguments)
        before = stage.server_cpu()
        with progress.step(f"kubectl gpufence {what}"):
            call = plugin(stage.plane.kubeconfig(), *arguments)
        figures += _figures(what, call, seconds, mib)
        servers = stage.server_cpu() - before
        figures.append(Figure("  CPU of API server and etcd meanwhile", servers, "s"))
    return figures


def _figures(what: str, call: Call, seconds: float | None, mib: float | None) -> list[Figure]:
    if call.lines < 10:
        raise RuntimeError(f"{what} said little: {call.notes}")
    return [
        _figure(what, call.seconds, "s", seconds),
        Figure("  CPU of the plugin", call.cpu_seconds, "s"),
        _figure("  memory", call.mib, "MiB", mib),
    ]


def _figure(what: str, value: float, unit: str, most: float | None) -> Figure:
    return Figure(what, value, unit) if most is None else at_most(what, value, unit, most)


CONTROLLER: Final = "gpufence-controller"
MOST_READY_SECONDS, MOST_MIB, MOST_BINDING_MILLISECONDS = 10.0, 100.0, 25.0
_REQUESTS: Final = "gpufence_webhook_requests_total"
_WARM_UP_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Services:
    """The two that run, and how soon they were ready."""

    webhook: Program
    controller: Program
    ready: tuple[Figure, ...]


@contextmanager
def services(stage: Stage, progress: Progress) -> Iterator[Services]:
    """Start both, one after the other, and let the API server call the webhook."""
    tls = stage.site.tls_dir
    settings = {
        "HOME": str(tls),
        "GPUFENCE_LISTEN": f"{LOOPBACK}:0",
        "GPUFENCE_TLS_DIR": str(tls),
        "GPUFENCE_DRAIN_SECONDS": "0",
    }
    ready: list[Figure] = []
    with progress.step("starting the webhook"):
        webhook = Program("webhook", stage.access(names.WEBHOOK_SERVICE), **settings)
    with webhook:
        seconds = webhook.seconds_until("/readyz")
        ready.append(at_most("webhook: ready after", seconds, "s", MOST_READY_SECONDS))
        ready.append(Figure("  CPU until then", webhook.cpu, "s"))
        with Program("controller", stage.access(CONTROLLER)) as controller:
            with progress.step("starting the controller"):
                seconds = controller.seconds_until_metric("gpufence_controller_fresh")
            ready.append(Figure("controller: knows all after", seconds, "s"))
            ready.append(Figure("  CPU until then", controller.cpu, "s"))
            calls = lambda: webhook.metric(_REQUESTS)  # noqa: E731 (handed on twice)
            with stage.site.calling(webhook.port_of("listen"), calls, patiently=False):
                yield Services(webhook, controller, tuple(ready))


def measure_churn(
    stage: Stage, running: Services, seconds: float, progress: Progress
) -> list[Figure]:
    """
    Let pods come and go for a time; the webhook's own log says how long each binding waited for it.
    """
    rate, webhook, controller = stage.size.rate, running.webhook, running.controller
    with coming_and_going(stage) as churn:
        time.sleep(_WARM_UP_SECONDS)
        lines = len(webhook.lines)
        before, began = (webhook.cpu, controller.cpu), time.monotonic()
        with progress.step(f"{rate} pods a second come and go, for {seconds:.0f} s"):
            time.sleep(seconds)
        lasted = time.monotonic() - began
        spent = webhook.cpu - before[0], controller.cpu - before[1]
        bindings = _bindings(webhook, lines)
        record = _ended(churn)
    if not bindings:
        raise RuntimeError(
            f"no binding was made exact: {record['failures'][:3]} {webhook.lines[-2:]}"
        )
    return [
        Figure("pods created and bound a second", len(bindings) / lasted, ""),
        Figure("  requests that failed, of all", float(len(record["failures"])), ""),
        at_most(
            "binding hook, pod GET included, p99",
            percentile(bindings, 99),
            "ms",
            MOST_BINDING_MILLISECONDS,
        ),
        Figure("  p50", percentile(bindings, 50), "ms"),
        Figure(
            "whole binding as the scheduler sees it, p50", percentile(record["bindings"], 50), "ms"
        ),
        Figure("  p99", percentile(record["bindings"], 99), "ms"),
        Figure("pods that went on without an answer of ours", stage.site.fail_opens(), ""),
        at_most("webhook: memory", webhook.memory[0], "MiB", MOST_MIB),
        Figure("  at most", webhook.memory[1], "MiB"),
        Figure("  of a core", spent[0] / lasted * 100, "%"),
        Figure("controller: memory", controller.memory[0], "MiB"),
        Figure("  at most", controller.memory[1], "MiB"),
        Figure("  of a core", spent[1] / lasted * 100, "%"),
        Figure("  a pass", controller.metric("gpufence_controller_pass_seconds"), "s"),
    ]


@contextmanager
def coming_and_going(stage: Stage) -> Iterator["subprocess.Popen[str]"]:
    """Let pods come and go, from a process of its own."""
    figures = str(stage.size.nodes), str(stage.size.rate)
    command = (sys.executable, "-m", "tests.scale.churn", str(stage.plane.kubeconfig()), *figures)
    with subprocess.Popen(
        command, env=surroundings({}), stdout=subprocess.PIPE, text=True
    ) as churn:
        try:
            yield churn
        finally:
            churn.terminate()


def _ended(churn: "subprocess.Popen[str]") -> dict[str, Any]:
    churn.terminate()
    record: dict[str, Any] = json.loads(churn.communicate()[0])
    return record


def _bindings(webhook: Program, after: int) -> list[float]:
    return [
        float(line["milliseconds"])
        for line in webhook.lines[after:]
        if line.get("hook") == "bindings" and line.get("result") == "exact"
    ]
