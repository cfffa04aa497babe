"""A release on an API server: installed, tested, upgraded, rolled back and removed by Helm."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.idle import highest_rung
from gpufence.mode import highest_mode
from kube import ClientSettings, connect, core
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import (
    Kubelet,
    documented,
    inventory,
    left_by_programs,
    rendered,
)
from tests.integration.deploy.test_chart import value_of
from tests.support.observing import eventually
from tests.support.programs import CHART, FROM, Helm
from tests.support.site import IMPERSONATION, running_minor
from tools.manifests import BASE, DEPLOY, REGISTRY, components
from tools.release.chart import packed

pytestmark = pytest.mark.nightly

WHERE = ("-n", names.SYSTEM_NAMESPACE)
SWITCH = core("namespaces", names.SYSTEM_NAMESPACE, "configmaps", names.POLICY_CONFIGMAP)
FIRST = "observe-first"
KEPT = {
    "customresourcedefinition <none> gpumemoryprofiles.gpufence.io",
    "apiservice <none> v1alpha1.gpufence.io",
}
# Helm's own record of each revision, and what pods' owners remember of earlier ones.
REVISIONS = re.compile(r"^secret default sh\.helm|^(pod|replicaset|job) ")
TOGETHER = [name for name in components() if name not in {"cert-manager", "gitops", "simulated"}]


@dataclass(frozen=True)
class Life:
    """What was seen from `helm install` to `helm uninstall`, in one release for all tests."""

    before: set[str]
    notes: str
    second: subprocess.CompletedProcess[str]
    tested: subprocess.CompletedProcess[str]
    examined: subprocess.CompletedProcess[str]
    issued: str
    installed: set[str]
    rights: list[dict[str, Any]]
    upgraded: str
    kept: str
    stopped: list[str]
    said: str
    rolled_back: set[str]
    left: set[str]


@pytest.fixture(scope="module")
def helm(helm_program: Path, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(helm_program, tmp_path_factory.mktemp("helm"), plane.kubeconfig())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as `make release` packs it."""
    file = tmp_path_factory.mktemp("archive") / "gpufence-0.1.0.tgz"
    file.write_bytes(packed(CHART, b"", 0))
    return file


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as its next version, which has images of its own and a value that was not there."""
    chart = tmp_path_factory.mktemp("newer") / "gpufence"
    shutil.copytree(CHART, chart)
    about = chart / "Chart.yaml"
    about.write_text(about.read_text("utf-8").replace("ersion: 0.1.0", "ersion: 0.2.0"), "utf-8")
    schema = chart / "values.schema.json"
    known = json.loads(schema.read_text("utf-8"))
    known["properties"]["later"] = {"type": "object"}
    schema.write_text(json.dumps(known), "utf-8")
    with (chart / "values.yaml").open("a", encoding="utf-8") as values:
        values.write("later: {word: there}\n")
    (chart / "templates" / "later.yaml").write_text("# {{ .Values.later.word }}\n", "utf-8")
    return chart


def switch(plane: ControlPlane) -> str:
    """Return what the kill switch says to agents and to the controller."""
    with connect(ClientSettings(kubeconfig=str(plane.kubeconfig()))) as client:
        data = client.get(SWITCH).get("data")
    return f"{highest_mode(data)} {highest_rung(data)}"


def turn(plane: ControlPlane, mode: str | None, idle: str | None) -> None:
    data = {names.POLICY_MAX_MODE: mode, names.POLICY_MAX_IDLE: idle}
    where = ("configmap", names.POLICY_CONFIGMAP, *WHERE, "--type=merge")
    plane.kubectl("patch", *where, "-p", json.dumps({"data": data}))


def image(plane: ControlPlane) -> str:
    path = "jsonpath={.spec.template.spec.containers[0].image}"
    return plane.kubectl("get", "deployment", "gpufence-webhook", *WHERE, "-o", path).stdout


def lasting(lines: set[str]) -> set[str]:
    return {line for line in lines if not REVISIONS.search(line)}


def settled(plane: ControlPlane, wanted: set[str]) -> set[str]:
    """Name what the cluster has, once that is what is wanted, or nobody would wait any longer."""
    found: set[str] = set()

    def is_there() -> bool:
        found.clear()
        found.update(inventory(plane))
        return lasting(found) == lasting(wanted)

    eventually(is_there)
    return found


def leaf(plane: ControlPlane) -> str:
    """Return what the install's hooks have brought for the webhook to serve."""
    where = ("secret", names.TLS_SECRET, *WHERE)
    return plane.kubectl("get", *where, "-o", "jsonpath={.data}").stdout


def agents_rights(plane: ControlPlane) -> list[dict[str, Any]]:
    path = "jsonpath={.rules}"
    rules: list[dict[str, Any]] = json.loads(
        plane.kubectl("get", "clusterrole", "gpufence-agent", "-o", path).stdout
    )
    return rules


@pytest.fixture(scope="module")
def life(helm: Helm, plane: ControlPlane, archive: Path, newer: Path) -> Life:
    """Install, test, take the next version with components, stop evictions, roll back, remove."""
    with Kubelet(plane) as kubelet:
        return lived(helm, plane, archive, newer, kubelet)


def lived(helm: Helm, plane: ControlPlane, archive: Path, newer: Path, kubelet: Kubelet) -> Life:
    before = inventory(plane)
    notes = helm("install", "gpufence", str(archive), FROM, "--set=observeFirst=true").stdout
    issued = leaf(plane)
    second = helm("install", "second", str(CHART), FROM, check=False)
    tested = helm("test", "gpufence", "--timeout=60s", check=False)
    installed = inventory(plane)
    rights = agents_rights(plane)
    values = [f"--set={value_of(name)}={str(name != FIRST).lower()}" for name in TOGETHER]
    upgrade = ("upgrade", "gpufence", str(newer), "--reset-then-reuse-values")
    helm(*upgrade, *values)
    upgraded = f"{image(plane)} {switch(plane)}"
    kept = leaf(plane)
    turn(plane, "cap", "warn")
    said = helm(*upgrade, "--set=observeFirst=true").stdout
    stopped = [switch(plane)]
    helm("rollback", "gpufence", "2")
    stopped.append(switch(plane))
    turn(plane, None, None)
    stopped.append(switch(plane))
    helm("rollback", "gpufence", "1")
    rolled_back = settled(plane, installed | KEPT)
    left_by_programs(plane)
    helm("uninstall", "gpufence", "--wait", "--timeout=60s")
    left = inventory(plane) - before
    plane.kubectl(*documented("kubectl delete crd"))
    return Life(
        *(
            before,
            notes,
            second,
            tested,
            kubelet.done["gpufence-doctor"],
            issued,
            installed,
            rights,
            upgraded,
            kept,
            stopped,
            said,
        ),
        *(rolled_back, left),
    )


def test_the_notes_lead_to_evictions(life: Life) -> None:
    """Helm says how to go on, with the release's own name."""
    assert "helm test gpufence --logs\n" in life.notes
    assert "helm upgrade gpufence CHART --reset-then-reuse-values" in life.notes
    assert "deploy/" not in life.notes
    assert "kubectl label namespace TEAM gpufence.io/mode=evict" in life.notes


def test_the_doctor_sees_everything_from_its_pod(life: Life) -> None:
    """The test's account may read all that the doctor asks for, no more is hidden from it."""
    assert "you may see everything this plugin asks for" in life.examined.stdout
    assert "may not see" not in life.examined.stdout
    assert "unknown " not in life.examined.stdout


def test_a_test_tells_what_only_starts_from_what_is_wrong(life: Life) -> None:
    """Where no pod runs yet the webhook is starting, which fails nothing for two minutes."""
    assert "0 of 2 replicas ready" in life.examined.stdout
    assert "nothing is wrong, 3 things are starting" in life.examined.stdout
    assert 0 == life.examined.returncode == life.tested.returncode


def test_a_test_leaves_nothing(life: Life) -> None:
    """The doctor's pod, account and rights go when it has looked."""
    assert [] == [line for line in life.installed if "doctor" in line]


def test_agents_get_the_rights_that_their_kubernetes_can_limit(
    life: Life, plane: ControlPlane
) -> None:
    """Helm asks the cluster for its version, and installs what kustomize has for that one."""
    older = running_minor() < IMPERSONATION
    folder = DEPLOY / "overlays" / "kubernetes-1.30" if older else BASE
    expected = rendered(plane, folder)["ClusterRole", "gpufence-agent"]["rules"]
    policies = {line for line in life.installed if "policy <none> gpufence-agent-pods" in line}

    assert expected == life.rights
    assert older == bool(policies)


def test_an_upgrade_brings_the_version_and_the_values(life: Life) -> None:
    """The next version's images run, and evictions begin where they were held back."""
    assert f"{REGISTRY}/webhook:0.2.0 evict release" == life.upgraded


def test_certificates_stay_through_an_upgrade(life: Life) -> None:
    """Helm says nothing of the Secrets' data, and the install job renews nothing that is well."""
    assert '"tls.crt"' in life.issued
    assert life.issued == life.kept


def test_the_api_server_trusts_the_webhook_and_the_right_to_say_so_is_gone(life: Life) -> None:
    """The install's hooks have run, and neither its account nor its rights are left."""
    assert "caBundle of every hook is valid" in life.examined.stdout
    assert [] == [line for line in life.installed if "certs-install" in line]


def test_nobody_but_people_lifts_a_kill_switch(life: Life) -> None:
    """What was set by hand stays through upgrade and rollback; a lower mode of a release counts."""
    assert ["observe warn", "cap warn", "evict release"] == life.stopped


def test_a_second_release_is_refused_by_the_name_of_the_first(life: Life) -> None:
    """There is one gpufence in a cluster, and Helm says whose it is."""
    assert 1 == life.second.returncode
    assert 'must equal "second": current value is "gpufence"' in life.second.stderr


def test_the_notes_tell_of_a_kill_switch_set_by_hand(life: Life) -> None:
    """An upgrade says what was set by hand, and how to take it back."""
    assert "max-mode is cap" in life.said
    assert "set by hand" not in life.notes


def test_a_rollback_brings_back_what_was(life: Life) -> None:
    """What the later version brought is gone but for profiles; the Job is the first one's."""
    assert lasting(life.installed) | KEPT == lasting(life.rolled_back)


def test_nothing_but_the_kind_of_profiles_is_left(life: Life) -> None:
    """The release's record and the namespace go, too; what people wrote in profiles stays."""
    assert KEPT == life.left


def test_a_namespace_of_the_clusters_own_is_kept(helm: Helm, plane: ControlPlane) -> None:
    """Who keeps the release in gpufence-system has that namespace made, and removes it himself."""
    before = inventory(plane)
    there = ("--namespace", names.SYSTEM_NAMESPACE)
    with Kubelet(plane):
        notes = helm("install", "mine", str(CHART), FROM, "--create-namespace", *there).stdout
    left_by_programs(plane)
    helm("uninstall", "mine", "--wait", "--timeout=60s", *there)
    plane.kubectl(*documented("kubectl -n gpufence-system delete configmap"))
    left = {line for line in inventory(plane) - before if not line.startswith(("pod ", "job "))}
    plane.kubectl("delete", "namespace", names.SYSTEM_NAMESPACE, "--timeout=50s")

    assert "pod-security.kubernetes.io/enforce=privileged" in notes
    assert {
        "namespace <none> gpufence-system",
        "configmap gpufence-system kube-root-ca.crt",
        "serviceaccount gpufence-system default",
    } == left
