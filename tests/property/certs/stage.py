"""Several runs, of which exactly one takes one step at a time, in an order that a test chooses."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from certs.ensure import Run, RunOptions
from certs.ports import NeedsInstallError, Replica, Served, World
from gpufence.errors import GpufenceError
from kube import JsonObject, KubeError, Listing, PatchType
from tests.support.certs import NAMES, NOW, FakeApi, FakeClock, FakeFleet

PATIENCE_SECONDS = 30.0


class KilledError(BaseException):
    """What SIGKILL is to a process: no handler of the product's sees it."""


class Actor:
    """One run that stands still before every call to the world until it is to take the step."""

    def __init__(
        self, api: FakeApi, fleet: FakeFleet, options: RunOptions, settled: Callable[[], None]
    ) -> None:
        self.api = api
        self.failure: GpufenceError | None = None
        self.is_over = False
        self._fleet = fleet
        self._clock = FakeClock(NOW)
        self._settle_seconds = options.patience.settle_seconds
        self._settled = settled
        self._go, self._still = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        world = World(self, self, self._ask)
        self._run = Run(world, NAMES, options, lambda _text: None)
        threading.Thread(target=self._play, daemon=True).start()
        self._wait_until_still()

    def step(self) -> None:
        """Let the run take one step, and return when it stands still again or is over."""
        if not self.is_over:
            self._go.release()
            self._wait_until_still()

    def kill(self) -> None:
        self._killed = True
        self.step()

    def get(self, path: str) -> JsonObject:
        self._turn()
        return self.api.get(path)

    def list(self, path: str, query: Mapping[str, str | int] | None = None) -> Listing[JsonObject]:
        self._turn()
        return self.api.list(path, query)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        self._turn()
        return self.api.post(path, body)

    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject:
        self._turn()
        return self.api.patch(path, body, patch_type)

    def delete(self, path: str, body: JsonObject | None = None) -> JsonObject:
        self._turn()
        return self.api.delete(path, body)

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def chance(self) -> float:
        return self._clock.chance()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
        self._turn()
        if seconds >= self._settle_seconds:
            self._settled()

    def _ask(self, endpoints: Sequence[Replica], name: str) -> tuple[Served, ...]:
        self._turn()
        return self._fleet.ask(endpoints, name)

    def _turn(self) -> None:
        self._still.release()
        if not self._go.acquire(timeout=PATIENCE_SECONDS) or self._killed:
            raise KilledError

    def _play(self) -> None:
        try:
            self._run.ensure()
        except (KilledError, NeedsInstallError):
            pass  # the latter has written nothing
        except KubeError as error:
            self.failure = error
        finally:
            self.is_over = True
            self._still.release()

    def _wait_until_still(self) -> Any:
        assert self._still.acquire(timeout=PATIENCE_SECONDS), "a run hangs"
