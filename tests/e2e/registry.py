"""What the manual types, and a registry of one's own with our images, which the node pulls from."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpufence import names
from simulator import debian
from simulator.cluster import SimulatedCluster
from simulator.cluster.images.archives import ImageArchives
from simulator.cluster.inside.containers import CTR
from simulator.controlplane.programs import LOOPBACK
from simulator.keda.programs import free_ports
from simulator.progress import Progress
from tests.e2e.site import Json, RealSite, notes
from tests.support.observing import wait_until
from tests.support.programs import answers
from tools import ROOT

REGISTRY = "registry.example.com"
"""How the manual calls a registry of one's own."""
AIR_GAP = ROOT / "docs" / "air-gap.md"
BUILT = "webhook"
"""What is built for the registry, by `--push`; the others are carried over as archives."""
CARRIED = ("agent", "certs")
CONFIGURATION = """\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: "{address}"}}
"""
# No certificate: what docs/air-gap.md says of such a registry.
UNENCRYPTED = '[[registry]]\nlocation = "{address}"\ninsecure = true\n'


@dataclass(frozen=True)
class Installed:
    """A cluster into which five commands have put gpufence, and a team whose pod it has evicted."""

    site: RealSite
    registry: str
    team: str
    event: Json

    def check_eviction(self) -> None:
        successor = self.site.pods(self.team, "greedy", running=False)[0]
        assert "3072 MiB" in self.event["message"]
        assert self.event["involvedObject"]["name"] != successor["metadata"]["name"]
        assert "yes" == notes(successor)[names.INJECTED]

    def check_pulls(self) -> None:
        wanted = images_of(self.registry)
        assert wanted == self.site.pulled(wanted)


def section(page: str, heading: str) -> str:
    """Return what a page says below a heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


def typed(text: str, said: Mapping[str, str]) -> list[list[str]]:
    """Return the words of each command of the first block, with what a person puts in."""
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    lines = found.group(1)
    for word, meant in said.items():
        lines = lines.replace(word, meant)
    return [shlex.split(line) for line in lines.splitlines()]


def images_of(registry: str) -> set[str]:
    """Name what an installation without components takes from it."""
    return {f"{registry}/gpufence/{each}:0.1.0" for each in (BUILT, *CARRIED)}


def forget(cluster: SimulatedCluster, registry: str) -> None:
    """Let the node have none of the registry's images, as before the first installation."""
    cluster.inside(*CTR, "images", "rm", "--sync", *images_of(registry))


@contextmanager
def filled_registry(cluster: SimulatedCluster, folder: Path) -> Iterator[str]:
    """Serve a registry, put our images into it by each documented way, and return its address."""
    progress = Progress(sys.stderr)
    (server,) = debian.ensure(debian.REGISTRY, os.environ, progress).values()
    (copier,) = debian.ensure(debian.SKOPEO, os.environ, progress).values()
    (port,) = free_ports(1)
    address = f"{LOOPBACK}:{port}"
    served, pushing = folder / "registry.yml", folder / "registries.conf"
    served.write_text(CONFIGURATION.format(folder=folder, address=address))
    pushing.write_text(UNENCRYPTED.format(address=address))
    environment = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(pushing)}
    with cluster.serving([str(server), "serve", str(served)], folder, port):
        wait_until(lambda: answers(f"http://{address}/v2/"), "the registry did not answer")
        archives = ImageArchives.from_environment(environment)
        archives.build(progress, "--name", f"{address}/gpufence", "--push", BUILT)
        for archive in archives.ensure(progress):
            if archive.name.startswith(CARRIED):
                command = carrying(archive, address)
                told = ("--registries-conf", str(pushing))
                subprocess.run([copier, *told, *command[1:]], check=True)
        archives.builder.run("buildah", "rmi", f"{address}/gpufence/{BUILT}:0.1.0")
        yield address


def carrying(archive: Path, address: str) -> list[str]:
    """Return what the manual types to bring an archive to a registry."""
    found = re.search(r"^skopeo copy .*$", AIR_GAP.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    line = found.group().replace("images/webhook.tar", str(archive)).replace(REGISTRY, address)
    return shlex.split(line.replace("/webhook", f"/{archive.name.partition('-')[0]}"))
