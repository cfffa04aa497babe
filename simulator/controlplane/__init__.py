"""
A real Kubernetes control plane on this machine, without root, containers or a cluster.

    assets = Assets.from_environment(os.environ)
    with ControlPlane.start(assets, Options(scheduler=True)) as plane:
        plane.kubectl("get", "namespaces")
"""

from simulator.controlplane.build import Assets
from simulator.controlplane.certificates import User
from simulator.controlplane.errors import (
    BuildError,
    ControlPlaneError,
    RequestError,
    StartError,
)
from simulator.controlplane.options import Options
from simulator.controlplane.plane import ControlPlane

__all__ = [
    "Assets",
    "BuildError",
    "ControlPlane",
    "ControlPlaneError",
    "Options",
    "RequestError",
    "StartError",
    "User",
]
