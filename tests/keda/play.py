"""Send messages as a load says; see how long they wait, and how many replicas there are."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.keda.model import MESSAGE_SECONDS, WARM_UP_SECONDS, percentile
from tests.keda.site import PACE, Sight, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.workload.stomp import StompClient
    from tests.keda.site import Broker, KedaSite

SETTLE_SECONDS = 5.0


class Done(NamedTuple):
    """A message that is done: when, how long it had waited, and whether it was begun before."""

    at: float
    waited: float
    again: bool


class Outcome(NamedTuple):
    """What became of one queue after the warm-up, in seconds of a cluster."""

    mean_replicas: float
    most_replicas: int
    wait_p99: float
    over_target: float
    most_pending: int
    messages: int


class Played(NamedTuple):
    """One load; `late` is how much too late 1 of 100 messages was sent by this machine."""

    began: float
    late: float
    done: dict[str, list[Done]]
    sights: dict[str, list[Sight]]


def play(site: KedaSite, queues: Sequence[str], times: Sequence[float]) -> Played:
    """Send a message to each queue at each of the times, which are in seconds of a cluster."""
    with ExitStack() as undo:
        collectors = {
            name: undo.enter_context(Collector(site.broker, f"{name}.done")) for name in queues
        }
        sights = undo.enter_context(Watch(site, queues))
        client = undo.enter_context(site.broker.client())
        began, late = time.time(), []
        for at in times:
            pause = began + at / PACE - time.time()
            if pause > 0:
                time.sleep(pause)
            late.append(time.time() - began - at / PACE)
            for name in queues:
                _send(client, name, MESSAGE_SECONDS)
        time.sleep(SETTLE_SECONDS)
        done = {name: one.done for name, one in collectors.items()}
        return Played(began, percentile(late, 0.99), done, sights)


def send(broker: Broker, queue: str, seconds: float) -> None:
    """Send one message that takes so long in a cluster."""
    with broker.client() as client:
        _send(client, queue, seconds)


def _send(client: StompClient, queue: str, seconds: float) -> None:
    client.send(queue, b"work", sent=f"{time.time():.3f}", seconds=f"{seconds / PACE:g}")


def outcome(played: Played, queue: str, target: float) -> Outcome:
    after = played.began + WARM_UP_SECONDS / PACE
    waits = [one.waited * PACE for one in played.done[queue] if one.at > after]
    sights = [one for one in played.sights[queue] if one.at > after]
    return Outcome(
        round(sum(one.wanted for one in sights) / len(sights), 1),
        max(one.wanted for one in sights),
        round(percentile(waits, 0.99), 1),
        round(sum(wait > target for wait in waits) / len(waits), 4),
        max(one.pending for one in sights),
        len(waits),
    )


class Collector:
    """Takes in what workers say they have done, until the block is left."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self.done: list[Done] = []
        self._client = broker.client()
        self._client.subscribe(queue, at_once=1000)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._collect, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _collect(self) -> None:
        while not self._stop.is_set():
            message = self._client.receive(0.2)
            if message is not None:
                at, waited, again = message.body.decode().split()
                self.done.append(Done(float(at), float(waited), again == "true"))
                self._client.acknowledge(message)
