"""
A real Kubernetes control plane on this machine, without root, containers or a cluster.

    assets = Assets.from_environment(os.environ)
    with ControlPlane.start(assets, PlaneOptions(scheduler=True)) as plane:
        plane.kubectl("get", "namespaces")
"""

from simulator.controlplane.build import Assets
from simulator.controlplane.errors import (
    BuildError,
    ControlPlaneError,
    RequestError,
    StartError,
)
from simulator.controlplane.identities import User
from simulator.controlplane.plane import ControlPlane
from simulator.controlplane.programs import PlaneOptions

__all__ = [
    "Assets",
    "BuildError",
    "ControlPlane",
    "ControlPlaneError",
    "PlaneOptions",
    "RequestError",
    "StartError",
    "User",
]
