"""What tools apply again and again is the same each time, also when a new version comes."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpufence import names
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import Kubelet, listed
from tests.support.observing import eventually
from tests.support.programs import Helm
from tests.support.site import IMPERSONATION, running_minor
from tools.manifests import all_of

WHERE = ("-n", names.SYSTEM_NAMESPACE)
OLDER = f"--set=kubernetes130={str(running_minor() < IMPERSONATION).lower()}"
COMMON = ("--set=gitops=true", "--set=need=true", "--set=idleRelease=true", OLDER)
DAILY = "daily"
VERSIONS = {
    "first": (),
    "image": ("--set=image.tag=0.2.0",),
    "setting": ("--set=image.tag=0.2.0", "--set=settings.certs.GPUFENCE_CERTS_SETTLE_SECONDS=1"),
}


@dataclass(frozen=True)
class Applied:
    """What the API server said of one version, and what a second time would change."""

    job: str
    ended: bool
    bundle: bool
    again: subprocess.CompletedProcess[str]


def apply(
    plane: ControlPlane, page: str, *, diff: bool = False
) -> subprocess.CompletedProcess[str]:
    verb = "diff" if diff else "apply"
    return plane.kubectl(verb, "--server-side", "-f", "-", stdin=page, check=not diff)


def applied(plane: ControlPlane, page: str) -> Applied:
    """Apply a version, wait for what its Job writes, and ask what would be changed by it again."""
    (job,) = (
        item["metadata"]["name"]
        for item in all_of(page)
        if item and item["kind"] == "Job" and names.CERTS_INSTALL in item["metadata"]["name"]
    )
    apply(plane, page)
    ended = eventually(lambda: "1" == text(plane, f"job/{job}", "{.status.succeeded}"))
    bundle = text(plane, "mutatingwebhookconfiguration/gpufence", "{.webhooks[*]..caBundle}")
    return Applied(job, ended, bool(bundle), apply(plane, page, diff=True))


def text(plane: ControlPlane, what: str, path: str) -> str:
    return plane.kubectl("get", what, *WHERE, "-o", f"jsonpath={path}", check=False).stdout


@pytest.fixture(scope="module")
def history(
    helm_program: Path, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Applied]]:
    """Apply versions as Argo CD renders them, each revision 1, and let a day go by."""
    helm = Helm(helm_program, tmp_path_factory.mktemp("helm"))
    pages = {name: helm.template(*COMMON, *more) for name, more in VERSIONS.items()}
    with Kubelet(plane):
        found = {"first": applied(plane, pages["first"])}
        patch = json.dumps({"data": {names.POLICY_MAX_MODE: "observe"}})
        switch = ("configmap", names.POLICY_CONFIGMAP, *WHERE, "--type=merge")
        plane.kubectl("patch", *switch, "-p", patch)
        found |= {name: applied(plane, page) for name, page in pages.items() if name != "first"}
        plane.kubectl("create", "job", "--from=cronjob/gpufence-certs", DAILY, *WHERE)
        ended = eventually(lambda: "1" == text(plane, f"job/{DAILY}", "{.status.succeeded}"))
        again = apply(plane, pages["setting"], diff=True)
        yield {**found, DAILY: Applied(DAILY, ended, bundle=True, again=again)}
    # The namespace takes along what is in it, old Jobs too.
    items = [item for item in all_of(pages["first"]) if item]
    lasting = [one for one in items if "namespace" not in one["metadata"]]
    plane.kubectl("delete", "-f", "-", "--timeout=50s", stdin=listed(lasting))


@pytest.mark.parametrize("version", [*VERSIONS, DAILY])
def test_what_is_applied_again_differs_in_nothing(
    history: dict[str, Applied], version: str
) -> None:
    """Neither certificates, trusted CAs, a kill switch set by hand nor the daily run are drift."""
    assert (0, "") == (history[version].again.returncode, history[version].again.stdout)


def test_each_content_has_a_job_of_its_own(history: dict[str, Applied]) -> None:
    """A Job cannot be changed: a new image or setting makes another one, which runs to its end."""
    assert len(history) == len({one.job for one in history.values()})
    assert all(one.ended and one.bundle for one in history.values())


def test_a_person_keeps_the_kill_switch(history: dict[str, Applied], plane: ControlPlane) -> None:
    """Two upgrades later evictions are still stopped."""
    where = f"{{.data.{names.POLICY_MAX_MODE}}}"

    assert history
    assert "observe" == text(plane, f"configmap/{names.POLICY_CONFIGMAP}", where)


def test_nothing_is_guessed_offline(helm_program: Path, tmp_path: Path) -> None:
    """What rendering would ask a cluster for has to be said, and no object is a hook."""
    helm = Helm(helm_program, tmp_path)
    page = helm.template("--set=gitops=true", "--set=kubernetes130=false")

    assert "helm.sh/hook" not in page
    with pytest.raises(AssertionError, match="kubernetes130 is not said: with gitops=true"):
        helm.template("--set=gitops=true")
