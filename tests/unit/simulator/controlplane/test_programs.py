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


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_server_is_on_loopback(name: str) -> None:
    """
    Every server binds to loopback, on the port held for it.
    """
    command = COMMANDS[name]

    assert "--bind-address=127.0.0.1" in command
    assert f"--secure-port={site().ports[name]}" in command
    assert "--permit-port-sharing=true" in command


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


def test_nodes_are_restricted() -> None:
    """
    Nodes are authorized as nodes and may change themselves only.
    """
    command = COMMANDS[programs.API_SERVER]

    assert "--authorization-mode=Node,RBAC" in command
    assert "--enable-admission-plugins=NodeRestriction" in command


@pytest.mark.parametrize(("service_accounts", "count"), [(True, 0), (False, 1)])
def test_service_accounts_need_a_controller(*, service_accounts: bool, count: int) -> None:
    """
    The ServiceAccount plugin is off only where no controller makes the accounts it asks for.
    """
    command = programs.api_server(site(service_accounts=service_accounts))

    assert count == command.count("--disable-admission-plugins=ServiceAccount")


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


def test_plain_control_plane_has_two_servers() -> None:
    """
    Without further wishes only etcd and the API server run.
    """
    assert [programs.ETCD, programs.API_SERVER] == PlaneOptions().servers
