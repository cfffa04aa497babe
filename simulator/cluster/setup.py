"""
What the inside of a cluster's machine is told by the outside, and what it answers.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

NODE_ADDRESS = "192.0.2.10"
"""Of a range for examples, which no network uses; no packet leaves the machine's own network."""

SIMULATED = Path("/var/lib/gpufence/simulator")
"""Where pods find the simulated cards, as deploy/components/simulated says. Inside only."""
STATE = SIMULATED / "state"


@dataclass(frozen=True)
class Setup:
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
        """
        The control plane's folder.
        """
        return self.folder / "plane"

    @property
    def pid(self) -> Path:
        """
        Where process 1 of the machine notes its PID as the outside knows it.
        """
        return self.folder / "pid"

    @property
    def ready(self) -> Path:
        """
        Written last, with the API server's port as the inside knows it.
        """
        return self.folder / "ready"

    def write(self) -> Path:
        """
        Put it down for the inside, and return where.
        """
        path = self.folder / "setup.json"
        path.write_text(json.dumps(asdict(self), default=str, indent=2))
        return path


def read_setup(path: Path) -> Setup:
    """
    Read what `Setup.write` put down.
    """
    said = json.loads(path.read_text())
    return Setup(
        folder=Path(said["folder"]),
        node=said["node"],
        cards=said["cards"],
        unit=said["unit"],
        cgroup=said["cgroup"],
        networks=Path(said["networks"]),
        images=tuple(map(Path, said["images"])),
    )
