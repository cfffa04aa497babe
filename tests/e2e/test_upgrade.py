"""From the first release to this one while pods are created, by Helm and by kubectl."""

import json
import os
import re
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from gpufence import names
from kube import ClientSettings, KubeError, connect, core
from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import HELM
from tests.e2e import older
from tests.e2e.registry import section, typed
from tests.e2e.site import OVERLAY, QUICK, Json, RealSite, deployment, notes, pod
from tests.support.observing import Beside, eventually
from tests.support.programs import CHART, FROM, Helm
from tests.support.site import AGENT, WEBHOOK
from tools import ROOT
from tools.manifests import own_overlay

pytestmark = [pytest.mark.e2e, pytest.mark.needs("older commits"), pytest.mark.timeout(1200)]

GONE = ("device-taints", "private-status")
"""Components of then that are no more."""
PARTS = ("guard-namespaces", "idle-release", "need", "simulated")
HURRY = (*QUICK, "GPUFENCE_NEED_SECONDS=5")
PROGRAMS = (f"deployment/{WEBHOOK}", f"deployment/{names.CONTROLLER}", f"daemonset/{AGENT}")
PAUSE_SECONDS = 0.2
PAST, PRESENT = "past", "present"
PROFILE, PEAK, MARGIN = f"deployment-{PAST}", "2048Mi", "40%"
TAKEN_BACK = "gpufence-agent-taints"


class Door(ABC):
    """One of the two ways in."""

    def __init__(self, site: RealSite, tree: Path, folder: Path) -> None:
        self.site, self.tree, self.folder = site, tree, folder

    @abstractmethod
    def install(self) -> None:
        """Install the older release."""

    @abstractmethod
    def upgrade(self) -> None:
        """Do what manual and changelog say."""

    @abstractmethod
    def remove(self) -> None:
        """Take all away, in whichever state it is."""

    @abstractmethod
    def rendered(self) -> str:
        """Return what today's release consists of."""

    def settle(self) -> None:
        for part in PROGRAMS:
            self.site.system("rollout", "status", part, "--timeout=110s")


class ByHelm(Door):
    def __init__(self, site: RealSite, tree: Path, folder: Path) -> None:
        super().__init__(site, tree, folder)
        program = HELM.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
        self._helm = Helm(program, folder, site.kubeconfig)
        self._values = [f"--set={value(part)}=true" for part in PARTS]
        self._values += [f"--set-string=settings.agent.{setting}" for setting in HURRY]

    def install(self) -> None:
        gone = [f"--set={value(part)}=true" for part in GONE]
        chart = str(self.tree / "deploy" / "chart")
        self._helm(
            "install", "gpufence", chart, "--set=image.prefix=gpufence", *gone, *self._values
        )

    def upgrade(self) -> None:
        gone = ["--set=image.prefix=null", *(f"--set={value(part)}=null" for part in GONE)]
        self._helm("upgrade", "gpufence", str(CHART), "--reset-then-reuse-values", FROM, *gone)

    def rendered(self) -> str:
        return self._helm.template("--no-hooks", *self._values)

    def remove(self) -> None:
        self._helm("uninstall", "gpufence", "--ignore-not-found", "--wait", "--timeout=100s")


class ByKubectl(Door):
    def __init__(self, site: RealSite, tree: Path, folder: Path) -> None:
        super().__init__(site, tree, folder)
        before, now = folder / "before", folder / "now"
        before.mkdir()
        now.mkdir()
        self._before = hurried(own_overlay(before, (*GONE, *PARTS), tree / "deploy" / "base"))
        self._now = hurried(own_overlay(now, PARTS))

    def install(self) -> None:
        self.site.cluster.kubectl("apply", "-k", str(self._before))

    def upgrade(self) -> None:
        said = {" .": f" {self._now}"}
        text = section("docs/install.md", "## Upgrading and rolling back")
        for _, *arguments in typed(text, said):
            self.site.cluster.kubectl(*arguments)
        self.settle()
        self.site.cluster.kubectl(*told_of(TAKEN_BACK))

    def rendered(self) -> str:
        return self.site.cluster.kubectl("kustomize", str(self._now)).stdout

    def remove(self) -> None:
        for folder in (self._now, self._before):
            remove = ("delete", "-k", str(folder), "--ignore-not-found", "--timeout=100s")
            self.site.cluster.kubectl(*remove)


def hurried(overlay: Path) -> Path:
    """Let the agents of an overlay lose no time."""
    pairs = (setting.split("=") for setting in HURRY)
    path = "/spec/template/spec/containers/0/env/-"
    patch = [
        {"op": "add", "path": path, "value": {"name": name, "value": text}} for name, text in pairs
    ]
    target = {"kind": "DaemonSet", "name": AGENT}
    with (overlay / "kustomization.yaml").open("a") as file:
        yaml.safe_dump({"patches": [{"target": target, "patch": json.dumps(patch)}]}, file)
    return overlay


def value(component: str) -> str:
    """Name a component as the chart's values do."""
    first, *rest = component.split("-")
    return first + "".join(each.capitalize() for each in rest)


def told_of(name: str) -> list[str]:
    """Return the command with which the changelog has an object deleted."""
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"`kubectl (delete [^`]*{name}[^`]*)`", page)
    assert found is not None
    return shlex.split(found.group(1))


class Load(Beside):
    """Creates pods that nothing schedules, several a second, and keeps what became of each."""

    def __init__(self, site: RealSite, namespace: str) -> None:
        super().__init__()
        self._site, self._namespace = site, namespace
        self.rewritten: list[bool] = []
        self.failed: list[str] = []

    def run(self) -> None:
        with connect(ClientSettings(kubeconfig=str(self._site.kubeconfig))) as client:
            while not self.over.wait(PAUSE_SECONDS):
                made = pod(self._namespace, f"load-{len(self.rewritten)}")
                made["spec"]["schedulingGates"] = [{"name": "example.com/load"}]
                try:
                    answer = client.post(core("namespaces", self._namespace, "pods"), made)
                except KubeError as error:
                    self.failed.append(str(error))
                else:
                    self.rewritten.append(notes(answer).get(names.INJECTED) == "yes")


@dataclass(frozen=True)
class Upgraded:
    """What was before an upgrade and after it."""

    site: RealSite
    team: str
    present: Json
    load: Load
    fresh: dict[str, str]
    found: dict[str, str]


@pytest.fixture(scope="module")
def tree(site: RealSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The older release, on a cluster without gpufence; at the end all is as before."""
    tree = older.unpack(tmp_path_factory.mktemp("older"))
    older.load_images(site.cluster, tree)
    site.cluster.kubectl("delete", "-k", OVERLAY, "--ignore-not-found", "--timeout=100s")
    yield tree
    site.install()


@pytest.fixture(scope="module", params=[ByHelm, ByKubectl])
def upgraded(
    request: pytest.FixtureRequest,
    site: RealSite,
    tree: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Upgraded]:
    """A cluster that was upgraded while one model was remembered and another one ran."""
    door: Door = request.param(site, tree, tmp_path_factory.mktemp("door"))
    fresh = older.afresh(site, door.rendered())
    try:
        with site.namespace() as team:
            door.install()
            door.settle()
            site.label(team, "evict")
            yield lived(door, team, fresh)
    finally:
        door.remove()
        kind = ("crd", "gpumemoryprofiles.gpufence.io", "--ignore-not-found")
        site.cluster.kubectl("delete", *kind)


def lived(door: Door, team: str, fresh: dict[str, str]) -> Upgraded:
    site = door.site
    site.apply(deployment(team, PAST, "hold 2Gi"), deployment(team, PRESENT, "hold 1Gi"))
    present = site.pod_of(team, PRESENT)
    site.until(lambda: peak(site, team) == PEAK, "its need was written down")
    where, spec = ("--namespace", team), json.dumps({"spec": {"margin": MARGIN}})
    site.cluster.kubectl("patch", "gmp", PROFILE, *where, "--type=merge", "-p", spec)
    site.cluster.kubectl("scale", f"deployment/{PAST}", "--replicas=0", *where)
    site.until(lambda: not site.pods(team, PAST, running=False), "the model ended")
    with Load(site, team) as load:
        door.upgrade()
        door.settle()
        eventually(lambda: older.installation(site) == fresh)
    return Upgraded(site, team, present, load, fresh, older.installation(site))


def peak(site: RealSite, team: str) -> str:
    where = ("gmp", PROFILE, "--namespace", team)
    return site.cluster.kubectl("get", *where, "-o", "jsonpath={.status.peak}", check=False).stdout


def test_no_admission_is_lost(upgraded: Upgraded) -> None:
    """Every pod that is created meanwhile is rewritten, and no creation fails."""
    assert [] == upgraded.load.failed
    assert {True} == set(upgraded.load.rewritten)
    assert 20 <= len(upgraded.load.rewritten)


def test_profiles_and_needs_are_kept(upgraded: Upgraded) -> None:
    """What a model has needed is known, and what a person wrote in its profile is there."""
    said = upgraded.site.get("gmp", PROFILE, "--namespace", upgraded.team)

    assert MARGIN == said["spec"]["margin"]
    assert PEAK == peak(upgraded.site, upgraded.team)
    assert PAST in upgraded.site.answer("recommend", "--namespace", upgraded.team)


def test_nothing_of_the_older_release_is_left(upgraded: Upgraded) -> None:
    """The cluster has what an installation of today makes, and each object says the same."""
    fresh, found = upgraded.fresh, upgraded.found
    others = [name for name in fresh | found if fresh.get(name) != found.get(name)]

    assert [] == [(fresh.get(name), found.get(name)) for name in others]


def test_pods_run_on(upgraded: Upgraded) -> None:
    """A pod that the older release rewrote runs on, and is measured."""
    name = upgraded.present["metadata"]["name"]
    pods = upgraded.site.pods(upgraded.team, PRESENT)

    assert [upgraded.present["metadata"]["uid"]] == [one["metadata"]["uid"] for one in pods]
    assert "1024Mi" in upgraded.site.answer("explain", "--namespace", upgraded.team, name)
