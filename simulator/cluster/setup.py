"""
What a cluster is asked to be, what the inside of its machine is told, and what can go wrong.

    ClusterError             anything below; the message says what to do
      NeedError              this machine or its user lacks something that can be named
      ImageError             an image could not be made
      MachineError           a program of the node ended early or was not ready in time
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from gpufence.errors import GpufenceError

CARDS = "2xT4"
NODE = "gpu-1"
NODE_ADDRESS = "192.0.2.10"
"""Of a range for examples, which no network uses; no packet leaves the machine's own network."""

SIMULATED = Path("/var/lib/gpufence/simulator")
"""Where pods find the simulated cards, as deploy/components/simulated says. Inside only."""
STATE = SIMULATED / "state"


class ClusterError(GpufenceError):
    """Covers every way in which the cluster can fail its caller."""


class NeedError(ClusterError):
    """Raised before anything is started, with all that is missing and how to get it."""


class ImageError(ClusterError):
    """Raised when an image cannot be built, with the last words of who tried."""


class MachineError(ClusterError):
    """Raised when a part of the node ends early or is not ready in time."""


@dataclass(frozen=True)
class ClusterOptions:
    """One node and its simulated cards, shared as Aliyun's gpushare shares them."""

    node: str = NODE
    cards: str = CARDS
    unit: str = "GiB"


@dataclass(frozen=True)
class ClusterSetup:
    """
    One node to be. `images` are archives to load; `cgroup` is the parent of everything it runs.
    """

    folder: Path
    node: str
    cards: str
    unit: str
    cgroup: str
    networks: Path
    images: tuple[Path, ...]

    @property
    def plane(self) -> Path:
        return self.folder / "plane"

    @property
    def pid(self) -> Path:
        """Where process 1 of the machine notes its PID as the outside knows it."""
        return self.folder / "pid"

    @property
    def ready(self) -> Path:
        """Written last, with the API server's port as the inside knows it."""
        return self.folder / "ready"

    def write(self) -> Path:
        path = self.folder / "setup.json"
        path.write_text(json.dumps(asdict(self), default=str, indent=2))
        return path


def read_setup(path: Path) -> ClusterSetup:
    values = json.loads(path.read_text())
    return ClusterSetup(
        folder=Path(values["folder"]),
        node=values["node"],
        cards=values["cards"],
        unit=values["unit"],
        cgroup=values["cgroup"],
        networks=Path(values["networks"]),
        images=tuple(map(Path, values["images"])),
    )
