"""gpufence in another namespace than its usual one, by Helm and by kustomize."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufence import names
from gpufence.need import need_configmap
from gpufence.snapshot import write_snapshot
from kube import ClientSettings, ForbiddenError, JsonObject, connect, core, group
from simulator.controlplane import ControlPlane, User
from tests.integration.deploy.rendering import Kubelet
from tests.integration.plugin.site import PluginSite
from tests.support import objects
from tests.support.authority import Authority
from tests.support.observing import eventually, wait_until
from tests.support.plugin import Said, raw_node, snapshot
from tests.support.programs import CHART, FROM, Helm
from tests.support.servers import ApiServer, own_address, reply
from tests.support.site import IMPERSONATION, running_minor
from tests.support.webhook_site import Webhook
from tools.manifests import components, own_overlay

NAME = "gpu-fences"
USUAL = names.SYSTEM_NAMESPACE
NAMED_ALL_THE_SAME = {"cert-manager"}
"""What takes the usual name out of the manifests themselves, as the manual says."""


def elsewhere(folder: Path, parts: list[str], namespace: str) -> Path:
    """Write what the manual asks for: one line more in one's own kustomization."""
    with (own_overlay(folder, parts) / "kustomization.yaml").open("a") as file:
        file.write(f"namespace: {namespace}\n")
    return folder


def test_one_line_moves_every_object(plane: ControlPlane, tmp_path: Path) -> None:
    """No object has the usual name, but the hooks' list of exempt namespaces."""
    parts = [name for name in components() if name not in NAMED_ALL_THE_SAME]
    page = plane.kubectl("kustomize", str(elsewhere(tmp_path, parts, NAME))).stdout
    left = [line.strip() for line in page.splitlines() if USUAL in line]

    assert {"- gpufence-system"} == {line for line in left if not line.startswith("#")}
    assert {NAME} == {
        hook["clientConfig"]["service"]["namespace"]
        for item in yaml.safe_load_all(page)
        for hook in item.get("webhooks", [])
    }


@dataclass(frozen=True)
class Moved:
    """What was seen of one installation in a namespace of its own."""

    made: dict[str, Any]
    doctor: Said
    seen_by_tenant: Said
    written: list[bool]
    usual: bool


def secret(plane: ControlPlane, namespace: str, folder: Path) -> Path:
    """Wait for what the certificates' Job issues, and mount it as a kubelet would."""
    path = core("namespaces", namespace, "secrets", names.TLS_SECRET)
    with connect(ClientSettings(kubeconfig=str(plane.kubeconfig()))) as client:
        wait_until(lambda: "tls.crt" in (client.get(path).get("data") or {}))
        for name, text in client.get(path)["data"].items():
            (folder / name).write_bytes(base64.b64decode(text))
    return folder


def serve(site: PluginSite, webhook: Webhook) -> None:
    """Let the Deployment's pods be this webhook: the Service leads to its port."""
    path = group("apps/v1", "namespaces", site.system, "deployments", names.WEBHOOK_SERVICE)
    ports = "/spec/template/spec/containers/0/ports"
    numbers = (webhook.port, webhook.status_port)
    site.admin.patch(
        path,
        [
            {"op": "replace", "path": f"{ports}/{at}/containerPort", "value": number}
            for at, number in enumerate(numbers)
        ],
    )
    pods = core("namespaces", site.system, "pods")
    label = {"labelSelector": f"app.kubernetes.io/name={names.WEBHOOK_SERVICE}"}

    def all_are_ready() -> bool:
        for pod in site.admin.list(pods, label).items:
            if pod["spec"]["containers"][0]["ports"][0]["containerPort"] == webhook.port:
                run_there(site, pod)
        return bool(site.admin.get(path)["status"].get("readyReplicas", 0) >= 2)

    wait_until(all_are_ready)


def run_there(site: PluginSite, pod: JsonObject) -> None:
    """Bind a pod to the node, as endpoints have to be, and have it run."""
    name = pod["metadata"]["name"]
    path = core("namespaces", site.system, "pods", name)
    if not pod["spec"].get("nodeName"):
        target = {"apiVersion": "v1", "kind": "Node", "name": site.node}
        site.admin.post(f"{path}/binding", {"metadata": {"name": name}, "target": target})
    site.report_ready(path)


def may_write(site: PluginSite, node: str, of: str) -> bool:
    """Return whether the agent of a node may store what models of a node have needed."""
    token = site.plane.service_account_token(site.system, names.AGENT, node=node)
    path = core("namespaces", site.system, "configmaps")
    with connect(ClientSettings(kubeconfig=str(site.kubeconfig_of(names.AGENT, token)))) as client:
        try:
            client.post(path, {"metadata": {"name": need_configmap(of)}}, {"dryRun": "All"})
        except ForbiddenError:
            return False
    return True


def looked_at(site: PluginSite, webhook: Webhook) -> Moved:
    site.label(site.team, "cap")
    site.install(raw_node())
    serve(site, webhook)
    state = snapshot(node=site.node)
    site.standin.on("GET /v1/snapshot", reply(write_snapshot(state).encode()))
    pods = core("namespaces", site.team, "pods")
    made: dict[str, Any] = {}

    def is_changed() -> bool:
        made.update(site.admin.post(pods, objects.gpu_pod("tried"), {"dryRun": "All"}))
        return names.INJECTED in made["metadata"].get("annotations", {})

    eventually(is_changed)
    viewer = User(f"viewer-of-{site.system}", "viewers")
    rights = ("--user", viewer.name)
    for kind, where in (("clusterrole", ()), ("role", ("-n", site.system))):
        bind = (f"{kind}binding", f"seen-in-{site.system}", f"--{kind}={'gpufence-viewer'}")
        site.kubectl("create", *bind, *rights, *where)
    site.wait_until_allowed(viewer, "get", "pods/proxy", "-n", site.system)
    usual = site.exists(core("namespaces", USUAL))
    doctor, seen = site.run("doctor"), site.run("top", "nodes", user=viewer)
    written = [may_write(site, site.node, of) for of in (site.node, "another")]
    return Moved(made, doctor, seen, written, usual)


def installed(by: str, plane: ControlPlane, helm_program: Path, folder: Path, name: str) -> None:
    if by == "helm":
        helm = Helm(helm_program, folder, plane.kubeconfig())
        where = ("--namespace", name)
        helm("install", name, str(CHART), FROM, *where, "--create-namespace")
        other = f"--set=namespace={USUAL}"
        refused = helm("upgrade", name, str(CHART), FROM, other, *where, check=False)
        assert f"--set namespace={name}" in refused.stderr
        return
    older = ["kubernetes-1.30"] if running_minor() < IMPERSONATION else []
    plane.kubectl("apply", "-k", str(elsewhere(folder, older, name)))


def removed(by: str, plane: ControlPlane, helm_program: Path, folder: Path, name: str) -> None:
    if by == "helm":
        helm = Helm(helm_program, folder, plane.kubeconfig())
        helm("uninstall", name, "--namespace", name, "--wait", "--timeout=60s")
    else:
        plane.kubectl("delete", "-k", str(folder), "--ignore-not-found", "--wait=false")
    plane.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
    for kind in ("clusterrolebinding",):
        plane.kubectl("delete", kind, f"seen-in-{name}", "--ignore-not-found")


@pytest.fixture(scope="module", params=["helm", "kustomize"])
def moved(
    request: pytest.FixtureRequest,
    helm_program: Path,
    plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Moved]:
    folder, tls = tmp_path_factory.mktemp("moved"), tmp_path_factory.mktemp("tls")
    name = f"{NAME}-by-{request.param}"
    with ExitStack() as undo:
        undo.callback(removed, request.param, plane, helm_program, folder, name)
        with Kubelet(plane):
            installed(request.param, plane, helm_program, folder, name)
            secret(plane, name, tls)
        team = undo.enter_context(plane.fresh_namespace("moved"))
        standin = undo.enter_context(ApiServer(address=own_address()))
        site = undo.enter_context(PluginSite(plane, standin, team, name))
        undo.callback(site.remove)
        address = own_address()
        settings = {"GPUFENCE_LISTEN": f"{address}:0", "GPUFENCE_STATUS_LISTEN": f"{address}:0"}
        webhook = Webhook(tls, Authority().client_context(), **settings)
        undo.enter_context(webhook)
        yield looked_at(site, webhook)


@pytest.mark.nightly
def test_the_api_server_trusts_and_calls_it(moved: Moved) -> None:
    """By the Service of that namespace and by the certificate issued for it, a pod is changed."""
    assert names.INJECTED in moved.made["metadata"].get("annotations", {})


@pytest.mark.nightly
def test_the_doctor_finds_it_and_nothing_wrong(moved: Moved) -> None:
    """The plugin reads from the hooks where the rest is, agents among it."""
    assert "WRONG" not in moved.doctor.out
    assert f"namespace {NAME}-by-" in moved.doctor.out
    assert "1 agent measures and answers" in moved.doctor.out
    assert "the API server reaches it" in moved.doctor.out, moved.doctor.out
    assert 0 == moved.doctor.code


@pytest.mark.nightly
def test_a_viewer_sees_agents_there(moved: Moved) -> None:
    """Both roles are enough to find it, without rights in the usual namespace."""
    assert (0, "") == (moved.seen_by_tenant.code, moved.seen_by_tenant.err)


@pytest.mark.nightly
def test_an_agents_token_is_held_to_its_node_there(moved: Moved) -> None:
    """Policies know the account by its own namespace."""
    assert [True, False] == moved.written


@pytest.mark.nightly
def test_nothing_is_in_the_usual_namespace(moved: Moved) -> None:
    """The usual one is not made."""
    assert not moved.usual
