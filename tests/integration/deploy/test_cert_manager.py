"""A release that changes from our certificates to cert-manager's and back, by Helm."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpufence import names
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import Kubelet, inventory
from tests.support.programs import CHART, FROM, Helm
from tests.support.tree import found
from tools import ROOT
from tools.manifests import COMPONENTS, all_of

pytestmark = pytest.mark.nightly

WHERE = ("-n", names.SYSTEM_NAMESPACE)
PAGE = COMPONENTS / "cert-manager" / "certificates.yaml"
ISSUED = [
    item["spec"]["secretName"]
    for item in all_of(PAGE.read_text(encoding="utf-8"))
    if item["kind"] == "Certificate"
]


@dataclass(frozen=True)
class Change:
    """What was mounted, and what was there, with ours, with cert-manager's, and with ours again."""

    mounted: tuple[str, str, str]
    there: tuple[set[str], set[str], set[str]]
    after: set[str]


def mounted(plane: ControlPlane) -> str:
    path = "jsonpath={.spec.template.spec.volumes[?(@.name=='tls')].secret.secretName}"
    return plane.kubectl("get", "deployment", "gpufence-webhook", *WHERE, "-o", path).stdout


def issue(plane: ControlPlane, name: str) -> None:
    """Make a Secret as cert-manager makes those of its certificates."""
    data = dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), "eA==")
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data}
    secret["metadata"] = {"name": name, "namespace": names.SYSTEM_NAMESPACE}
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(secret))


@pytest.fixture(scope="module")
def change(
    helm_program: Path, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Change:
    helm = Helm(helm_program, tmp_path_factory.mktemp("helm"), plane.kubeconfig())
    with Kubelet(plane):
        return changed(helm, plane)


def changed(helm: Helm, plane: ControlPlane) -> Change:
    upgrade = ("upgrade", "gpufence", str(CHART), "--reset-then-reuse-values")
    before = inventory(plane)
    helm("install", "gpufence", str(CHART), FROM)
    seen = [(mounted(plane), inventory(plane) - before)]
    for value in ("true", "false"):
        helm(*upgrade, f"--set=certManager={value}")
        seen.append((mounted(plane), inventory(plane) - before))
        for name in ISSUED if value == "true" else ():
            issue(plane, name)
    helm("uninstall", "gpufence", "--wait", "--timeout=60s")
    (one, there), (other, then), (again, back) = seen
    return Change((one, other, again), (there, then, back), inventory(plane) - before)


def test_each_has_secrets_of_its_own(change: Change) -> None:
    """Neither has to take over, empty or wait for what the other one has made."""
    (leaf,) = {found("Certificate", names.WEBHOOK_SERVICE, PAGE.parent)["spec"]["secretName"]}

    assert (names.TLS_SECRET, leaf, names.TLS_SECRET) == change.mounted


def test_the_other_ones_program_goes(change: Change) -> None:
    """With cert-manager nobody else writes certificates, and nothing of ours is left of that."""
    _, then, _ = change.there

    assert [] == [line for line in then if line.startswith(("cronjob ", "secret gpufence-system"))]
    assert 2 == len([line for line in then if line.startswith("certificate ")])


def test_back_again_only_cert_managers_secrets_are_left(change: Change) -> None:
    """It keeps what it has issued; the manual has the command that takes it away."""
    ours, _, back = change.there
    left = {line for line in back - ours if line.startswith(("secret gpufence", "cert", "issuer"))}
    manual = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")

    assert {f"secret {names.SYSTEM_NAMESPACE} {name}" for name in ISSUED} == left
    assert f"delete secret {' '.join(sorted(ISSUED))}`" in manual


def test_uninstalling_takes_them_too(change: Change) -> None:
    """The namespace goes, with all Secrets in it."""
    assert set() == change.after
