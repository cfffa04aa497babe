"""A machine per test, and one client per module that watches machine after machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.nvml.build import CURRENT
from simulator.nvml.state import State
from tests.support.driver import Client

ALL_MODELS = "T4,V100-16,V100-32,A10G,L4,A100-40,A100-80,H100"

StartClient = "Callable[..., Client]"


@pytest.fixture(scope="module")
def state_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this module's machines stand, one after the other."""
    return tmp_path_factory.mktemp("nvml") / "cards"


@pytest.fixture
def machine(state_path: Path) -> State:
    """A new machine with a card of every model."""
    return State.create(state_path, ALL_MODELS)


@pytest.fixture(scope="module")
def module_client(state_path: Path) -> Iterator[Client]:
    State.create(state_path, ALL_MODELS)
    with Client(state_path) as client:
        yield client


@pytest.fixture
def client(machine: State, module_client: Client) -> Client:
    """
    A client of the test's machine, started before it: the library notices that it was replaced.
    """
    del machine
    return module_client


@pytest.fixture
def start(machine: State) -> Iterator[Callable[..., Client]]:
    """Starts clients of the test's machine, for tests after which a client is no longer usable."""
    clients: list[Client] = []

    def start_client(variant: str = CURRENT, *, init: bool = True) -> Client:
        clients.append(Client(machine.path, variant, init=init))
        return clients[-1]

    yield start_client
    for one in clients:
        one.close()
