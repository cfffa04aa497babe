"""From nothing to evictions with kubectl and one's own registry, as the manual types it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.registry import REGISTRY, Installed, forget, section, typed
from tests.e2e.site import OVERLAY, RealSite
from tools.manifests import DEPLOY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

INSTALL = "docs/install.md"
WAY = "## From nothing to evictions in five commands"


def checkout(folder: Path, registry: str) -> Path:
    """Copy the manifests, name the registry in them as the manual types it, and take our cards."""
    shutil.copytree(DEPLOY, folder / "deploy")
    said = section(INSTALL, "## Images")
    found = re.search(r"`(grep -rl set-your-registry[^`]*)`", said)
    assert found is not None
    line = found.group(1).replace(REGISTRY, registry)
    subprocess.run(["sh", "-euc", line], cwd=folder, check=True)
    base = folder / "deploy" / "base"
    with (base / "kustomization.yaml").open("a") as file:
        file.write("components: [../components/simulated]\n")
    return base


@pytest.fixture(scope="module")
def installed(
    site: RealSite, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """A cluster without gpufence, and the manual's five commands; at the end all is as before."""
    base = checkout(tmp_path_factory.mktemp("gpufence"), registry)
    site.cluster.kubectl("delete", "-k", OVERLAY, "--ignore-not-found", "--timeout=100s")
    forget(site.cluster, registry)
    try:
        with site.namespace() as team:
            said = {"TEAM": team, "deploy/": f"{base.parent}/"}
            for _, *arguments in typed(section(INSTALL, WAY), said):
                site.cluster.kubectl(*arguments)
                if arguments[0] == "apply":
                    site.settle()
            yield Installed(site, registry, team, site.evict_greedy(team))
    finally:
        remove = ("delete", "-k", str(base), "--ignore-not-found", "--timeout=100s")
        site.cluster.kubectl(*remove)
        site.install()


def test_five_commands_lead_to_an_eviction(installed: Installed) -> None:
    """A pod that breaks its limit is gone, and its successor is configured with the limit."""
    installed.check_eviction()


def test_the_node_pulls_from_ones_own_registry(installed: Installed) -> None:
    """No image was on the node under its name there: each is fetched, built or carried over."""
    installed.check_pulls()
