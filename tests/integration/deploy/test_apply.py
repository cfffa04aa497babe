"""Every installation that we describe is one that an API server takes, and gives back entirely."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufence import names
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import (
    WORKLOADS,
    Kustomize,
    Objects,
    inventory,
    listed,
    rendered,
)
from tests.support.tree import pod_spec
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, DEPLOY, components, own_overlay

STRICT = ("--validate=strict", "--warnings-as-errors")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
CLEARING = INSTALL.partition("\n## Removing\n")[2]
WAY = INSTALL.partition("\n## From nothing to evictions")[2].partition("\n## ")[0]
TEAM = "team-a"
# With cert-manager there would be no Secrets of ours to look at; simulated cards are for tests, and
# gitops changes a Job that is there already.
APART = {"cert-manager", "gitops", "simulated"}
TOGETHER = [name for name in components() if name not in APART]


def commands(section: str) -> list[str]:
    """Return the shell commands of a part of the documentation, one for each block."""
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def run_documented(plane: ControlPlane, script: str) -> None:
    """Run a block of the documentation as its reader would."""
    path = f"{plane.kubectl_path.parent}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": path, "KUBECONFIG": str(plane.kubeconfig()), "HOME": str(plane.folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )


@dataclass(frozen=True)
class Story:
    """What was seen from the first command to the last, in one installation for all tests."""

    before: set[str]
    namespace: str
    switch: str
    diff: subprocess.CompletedProcess[str]
    secret: str
    between: str
    after: set[str]


@pytest.fixture(scope="module")
def story(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Install by the five commands, install again, add what goes together, and remove it all."""
    before = inventory(plane)
    plane.kubectl("create", "namespace", TEAM)
    for line in five_commands():
        plane.kubectl(*shlex.split(line)[1:])
    where = ("-n", names.SYSTEM_NAMESPACE)
    patch = '{"data":{"tls.crt":"eA=="}}'
    plane.kubectl("patch", "secret", names.TLS_SECRET, *where, "-p", patch)
    switch = plane.kubectl("get", "configmap", names.POLICY_CONFIGMAP, *where, "-o", "yaml").stdout
    patch = f'{{"data":{{"{names.POLICY_MAX_MODE}":"cap"}}}}'
    plane.kubectl("patch", "configmap", names.POLICY_CONFIGMAP, *where, "--type=merge", "-p", patch)
    diff = plane.kubectl("diff", "-k", str(BASE), check=False)
    folder = str(own_overlay(tmp_path_factory.mktemp("mine"), TOGETHER))
    plane.kubectl("apply", "-k", folder, *STRICT)
    namespace = plane.kubectl("get", "namespace", TEAM, "-o", "yaml").stdout
    secret = plane.kubectl("get", "secret", names.TLS_SECRET, *where, "-o", "yaml").stdout
    between = plane.kubectl("get", "all", *where, "-o", "name").stdout
    plane.kubectl("delete", "-k", folder, "--timeout=50s")
    plane.kubectl("delete", "namespace", TEAM, "--timeout=50s")
    return Story(before, namespace, switch, diff, secret, between, inventory(plane))


@pytest.fixture(scope="module")
def namespace(plane: ControlPlane, story: Story) -> Iterator[str]:
    """Lend the namespace, without which a dry run of what lives in it is not possible."""
    assert story.before
    manifest = str(BASE / "system" / "namespace.yaml")
    plane.kubectl("apply", "-f", manifest)
    yield names.SYSTEM_NAMESPACE
    plane.kubectl("delete", "-f", manifest, "--timeout=50s")


def five_commands() -> list[str]:
    (script,) = commands(WAY)
    return script.replace("TEAM", TEAM).replace("deploy/", f"{DEPLOY}/").splitlines()


def test_an_api_server_takes_the_base_without_a_word(plane: ControlPlane, namespace: str) -> None:
    """Every object passes the API server's own validation, and nothing is warned about."""
    told = plane.kubectl("apply", "-k", str(BASE), "--dry-run=server", *STRICT)

    assert "" == told.stderr
    assert f"namespace/{namespace}" in told.stdout


def test_an_api_server_takes_every_overlay_without_a_word(
    plane: ControlPlane, namespace: str, by_kustomize: Kustomize
) -> None:
    """The same holds for whatever a component brings or has otherwise than the base."""
    base = by_kustomize(())
    overlays = [by_kustomize((name,)) for name in components()]
    other = [[item for key, item in each.items() if item != base.get(key)] for each in overlays]
    every = [item for items in other for item in items]
    command = ("apply", "-f", "-", "--dry-run=server", *STRICT)
    told = plane.kubectl(*command, stdin=listed(every))

    assert namespace
    assert "" == told.stderr
    assert all(other)
    assert len(every) == len(told.stdout.splitlines())


@pytest.mark.parametrize("order", [1, -1], ids=["forwards", "backwards"])
def test_components_can_be_combined(plane: ControlPlane, tmp_path: Path, order: int) -> None:
    """No component takes for granted what another one changes."""
    folder = own_overlay(tmp_path, components()[::order])
    spec = rendered(plane, folder)["DaemonSet", "gpufence-agent"]["spec"]["template"]["spec"]
    names_set = [entry["name"] for entry in spec["containers"][0]["env"]]

    assert "runtimeClassName" not in spec
    assert {"GPUFENCE_VOLCANO_FACTOR", "GPUFENCE_LAST_RESORT_KILL"} < set(names_set)
    assert len(set(names_set)) == len(names_set)


def test_five_commands_lead_to_evictions(story: Story) -> None:
    """The documented way ends with a namespace and a kill switch that let agents evict."""
    assert 5 == len(five_commands())
    assert f"{names.MODE}: evict" in story.namespace
    assert f"  {names.POLICY_DEFAULT_MAX_MODE}: evict" in story.switch


def test_what_is_installed_can_be_installed_again(story: Story) -> None:
    """A second run would change nothing, not even a kill switch that was set by hand since."""
    assert (0, "") == (story.diff.returncode, story.diff.stdout)


def test_certificates_stay_through_an_upgrade(story: Story) -> None:
    """Applying manifests that say nothing of the Secrets' data leaves it."""
    assert "tls.crt: eA==" in story.secret


def test_everything_is_given_back(story: Story) -> None:
    """Installed with all components that go together, and removed, it leaves nothing."""
    assert "daemonset.apps/gpufence-agent" in story.between
    assert set() == story.after - story.before


def test_documented_commands_clear_the_rest(plane: ControlPlane, story: Story) -> None:
    """The documented commands take all annotations and labels away that are left."""
    assert story.before
    word, kept = "gpufence.io/plan=x", "example.com/gpufence.io-like=x"
    plane.kubectl("create", "namespace", "left")
    plane.kubectl("label", "namespace", "left", f"{names.MODE}=cap")
    plane.kubectl("create", "-f", "-", stdin=_node("left"))
    plane.kubectl("annotate", "node", "left", f"{names.CARDS}=x", kept)
    plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "left", "--timeout=30s")
    plane.kubectl("run", "left", "-n", "left", "--image=none", f"--annotations={word}")
    plane.kubectl("annotate", "pod", "left", "-n", "left", "env.gpufence.io/s0=0.5", kept)

    _, *scripts = commands(CLEARING)
    for script in scripts:
        run_documented(plane, script)
    shown = [
        plane.kubectl("get", kind, "left", "-n", "left", "-o", "yaml").stdout
        for kind in ("pod", "node", "namespace")
    ]
    plane.kubectl("delete", "node/left", "namespace/left", "--wait=false")

    assert 2 == len(scripts)
    assert not [
        text for text in shown if re.search(r"^ *(env\.)?gpufence\.io/", text, re.MULTILINE)
    ]
    assert 2 == sum(kept.partition("=")[0] in text for text in shown)


def _node(name: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


NAMES = sorted(path.name for path in COMPONENTS.iterdir())
RIGHTS = re.compile("hostPID|privileged|runAs|securityContext")
KILLS = "last-resort-kill"
MIGHTY = [
    name
    for name in NAMES
    if any(RIGHTS.search(path.read_text("utf-8")) for path in (COMPONENTS / name).glob("*.yaml"))
]


def owns_the_node(spec: dict[str, Any]) -> bool:
    """Return whether a pod is privileged, root and among the host's processes, all at once."""
    of_pod = spec.get("securityContext", {})
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    contexts = [of_pod | item.get("securityContext", {}) for item in containers]
    return spec.get("hostPID", False) and any(
        each.get("privileged") and each.get("runAsUser", 0) == 0 for each in contexts
    )


def built(plane: ControlPlane, folder: Path, *components: str) -> Objects:
    here = folder / "-".join(components)
    here.mkdir()
    return rendered(plane, own_overlay(here, components))


@pytest.mark.parametrize(
    "mighty",
    [pytest.param(name, marks=() if name == KILLS else pytest.mark.nightly) for name in MIGHTY],
)
def test_no_pair_makes_a_pod_that_owns_its_node(
    control_plane: ControlPlane, tmp_path: Path, mighty: str
) -> None:
    """In either order two that change rights build without a privileged root who sees the host."""
    pairs = {pair for name in MIGHTY for pair in ((mighty, name), (name, mighty))}
    owning = []
    for pair in sorted(pairs):
        items = built(control_plane, tmp_path, *dict.fromkeys(pair))
        workloads = [item for (kind, _), item in items.items() if kind in WORKLOADS]
        owning += [pair for item in workloads if owns_the_node(pod_spec(item))]

    assert [] == owning


def test_alone_it_is_root_who_kills(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The component does what it is for where nothing else makes the agent mighty."""
    items = built(control_plane, tmp_path, KILLS)
    spec = pod_spec(items["DaemonSet", "gpufence-agent"])

    assert (0, False) == (
        spec["securityContext"]["runAsUser"],
        spec["securityContext"]["runAsNonRoot"],
    )
