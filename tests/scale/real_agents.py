"""
What real agents ask of the API server: one at its usual pace, hundreds at once, and all of them
when the API server comes back.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from simulator.nvml.build import environment
from simulator.nvml.state import State
from simulator.progress import Progress
from tests.scale import size
from tests.scale.audit import Asked, Relay
from tests.scale.stage import Stage
from tests.support.observing import Figure, at_most, wait_until
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
        """
        Wait until all that is to be said of the pods has been: after a minute they count as idle.
        """
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
    """
    Let agents be until the block is over and so much time, and tell what each asked on average.
    """
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
