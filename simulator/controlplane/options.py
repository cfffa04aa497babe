"""
PURE: what a control plane is made of.
"""

from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane import programs


@dataclass(frozen=True)
class Options:
    """
    What runs besides etcd and the API server, and where.

    Without a controller manager there are no ServiceAccounts but those that somebody makes, and
    pods need none. With `kubelet` the API server is told how to reach nodes and pods: somebody runs
    a kubelet on the same network. A folder that is named here must be empty and is kept; without
    one everything is in a temporary folder, which disappears with the control plane.
    """

    scheduler: bool = False
    controller_manager: bool = False
    kubelet: bool = False
    folder: Path | None = None

    @property
    def servers(self) -> list[str]:
        """
        List what is to run, in the order of starting.
        """
        wanted = [programs.ETCD, programs.API_SERVER]
        if self.controller_manager:
            wanted.append(programs.CONTROLLER_MANAGER)
        if self.scheduler:
            wanted.append(programs.SCHEDULER)
        return wanted
