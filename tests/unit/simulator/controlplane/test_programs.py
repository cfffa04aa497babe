"""
The command lines of the control plane.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from simulator.controlplane import PlaneOptions, programs

FOLDER = Path("/folder")


def site(*, service_accounts: bool = False) -> programs.PlaneLayout:
    """
    Lay out a control plane that is never started.
    """
    names = (
        programs.ETCD,
        programs.API_SERVER,
        programs.CONTROLLER_MANAGER,
        programs.SCHEDULER,
    )
    return programs.PlaneLayout(
        binaries=defaultdict(lambda: Path("/bin/program")),
        folder=FOLDER,
        ports={name: 20000 + number for number, name in enumerate(names)},
        service_accounts=service_accounts,
    )


COMMANDS = {
    programs.API_SERVER: programs.api_server(site()),
    programs.CONTROLLER_MANAGER: programs.controller_manager(site(), FOLDER / "config"),
    programs.SCHEDULER: programs.scheduler(site(), FOLDER / "config"),
}


@pytest.mark.parametrize("command", [*COMMANDS.values(), programs.etcd(site())])
def test_no_feature_gate_is_touched(command: list[str]) -> None:
    """
    Nothing alpha is switched on and no API is added.
    """
    assert [] == [word for word in command if "feature-gates" in word or "runtime-config" in word]


def test_etcd_opens_no_port() -> None:
    """
    All addresses of etcd are sockets in the folder.
    """
    addresses = [
        word.partition("=")[2].removeprefix("default=")
        for word in programs.etcd(site())
        if "-urls=" in word or "-cluster=" in word
    ]

    assert 5 == len(addresses)
    assert all(address.startswith("unix:///folder/") for address in addresses)


def test_servers_start_in_order() -> None:
    """
    What others depend on is started before them.
    """
    options = PlaneOptions(scheduler=True, controller_manager=True)

    assert [
        programs.ETCD,
        programs.API_SERVER,
        programs.CONTROLLER_MANAGER,
        programs.SCHEDULER,
    ] == options.servers
