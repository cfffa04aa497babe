"""
What real agents ask of the API server, one at its usual pace, hundreds at once, and all of them
when it comes back; and what webhook, controller and plugin take.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpufence import names
from simulator.nvml.build import environment
from simulator.nvml.state import State
from simulator.progress import Progress
from tests.scale import size
from tests.scale.stage import Asked, Call, Program, Relay, Stage, plugin
from tests.support.observing import Figure, at_most, percentile, wait_until
from tests.support.servers import LOOPBACK
from tests.support.site import AGENT, surroundings

MOST_REQUESTS: Final = 0.05
_WATCHES: Final = 4
SLOW: Final = {
    "GPUFENCE_INTERVAL_SECONDS": "10",  # how often it looks at cards is no request
    "GPUFENCE_ACTIVITY_SECONDS": "10",
    "GPUFENCE_IDLE_SECONDS": "86400",  # nobody becomes idle on cards that nobody uses
}
_START_SECONDS: Final = 600.0
_QUIET_SECONDS: Final = 90.0


class Fleet:
    """Real agents of the first nodes, and what they have asked."""

    def __init__(self, stage: Stage, relay: Relay, count: int, label: str) -> None:
        self.stage, self.relay, self.count, self.label = stage, relay, count, label
        self._quiet_at = time.time() + _QUIET_SECONDS

    def asked(self, since: float) -> list[Asked]:
        return self.stage.audit.asked(AGENT, since, time.time())

    def wait_until_quiet(self, progress: Progress) -> None:
        """Wait until all has been said of the pods, which count as idle after a minute."""
        with progress.step(f"{self.label}: until all is said"):
            time.sleep(max(0.0, self._quiet_at - time.time()))

    def wait_until_watching(self, since: float) -> None:
        """Wait until each of them has its watches."""

        def watching() -> bool:
            begun = Counter(
                item.pod for item in self.asked(since) if item.verb == "watch" and item.code == 200
            )
            return sum(number >= _WATCHES for number in begun.values()) >= self.count

        wait_until(watching, f"not all of {self.count} agents watch", _START_SECONDS)


@contextmanager
def real_agents(stage: Stage, count: int, label: str, **settings: str) -> Iterator[Fleet]:
    """Run the agents of so many nodes, on cards of which nobody uses any."""
    folder = stage.folder / f"agents-{count}"
    folder.mkdir()
    state = State.create(folder / "cards", f"{size.CARDS}xT4")
    with Relay(stage.plane.port) as relay:
        fleet = Fleet(stage, relay, count, label)
        said = [_agent(stage, relay, number, folder, settings) for number in range(count)]
        process = subprocess.Popen(
            (sys.executable, "-m", "tests.scale.fleet"),
            env=surroundings(environment(state.path)),
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdin is not None
            with process.stdin as pipe:
                json.dump(said, pipe)
            yield fleet
        finally:
            process.terminate()
            process.wait(60)


def measure_start(fleet: Fleet, since: float) -> list[Figure]:
    """See what it took until each of them knew what it needs, and had said what it sees."""
    asked = fleet.asked(since)
    received = fleet.relay.answered / fleet.count / 1000
    said = [item for item in asked if item.verb == "patch"]
    return [
        Figure(f"{fleet.label}: requests at its start, each", len(asked) / fleet.count, ""),
        Figure("  of that: conditions of its pods, and its cards", len(said) / fleet.count, ""),
        Figure("  received for that, each", received, "kB"),
    ]


@contextmanager
def resting(
    fleet: Fleet, seconds: float, told: Callable[[Iterable[Figure]], None], progress: Progress
) -> Iterator[None]:
    """Leave agents alone for the block and so much time, and tell what each asked on average."""
    since, before = time.time(), (fleet.relay.asked, fleet.relay.answered)
    yield
    with progress.step(f"{fleet.label}: at rest for {seconds:.0f} s in all"):
        time.sleep(max(0.0, since + seconds - time.time()))
    lasted = time.time() - since
    up, down = fleet.relay.asked - before[0], fleet.relay.answered - before[1]
    each = fleet.count * lasted
    asked = len(fleet.asked(since)) / each
    told(
        [
            at_most(f"{fleet.label}: requests a second, each", asked, "", MOST_REQUESTS),
            Figure("  bytes sent a second, each", up / each, "B"),
            Figure("  bytes received a second, each", down / each, "B"),
        ]
    )


def measure_return(fleet: Fleet, progress: Progress) -> list[Figure]:
    """Restart the API server under everybody."""
    plane = fleet.stage.plane
    with progress.step("restarting the API server"):
        plane.stop_api_server()
        since, before = time.time(), fleet.relay.answered
        plane.start_api_server()
    with progress.step("until everybody watches again"):
        fleet.wait_until_watching(since)
    asked = fleet.asked(since)
    lists = sorted(item.at - since for item in asked if item.verb == "list")
    watches = sorted(item.at - since for item in asked if item.verb == "watch" and item.code == 200)
    return [
        Figure("every agent watches again after", watches[-1] if watches else 0.0, "s"),
        Figure("  requests for that, each", len(asked) / fleet.count, ""),
        Figure("  lists, each", len(lists) / fleet.count, ""),
        Figure("  most requests in one second, of each", most_in_a_second(asked) / fleet.count, ""),
        Figure(
            "  bytes received, each", (fleet.relay.answered - before) / fleet.count / 1000, "kB"
        ),
    ]


def most_in_a_second(asked: Sequence[Asked]) -> int:
    return max(Counter(int(item.at) for item in asked).values(), default=0)


def _agent(
    stage: Stage, relay: Relay, number: int, folder: Path, settings: dict[str, str]
) -> dict[str, object]:
    pod = size.agent_name(number)
    access = stage.access(AGENT, pod, relay)
    said = {
        "GPUFENCE_NODE": size.node_name(number),
        "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0",
        "GPUFENCE_NAMESPACE": stage.site.system,
        **settings,
    }
    return {
        "environment": said,
        "server": access.url,
        "authority": str(access.authority),
        "token": str(access.token),
        "log": str(folder / f"{pod}.log"),
    }


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
    """Let pods come and go for a time; the webhook's log says how long each binding waited."""
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
