"""What is rendered, unpacked, and left over."""

import json
import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from gpufence import names
from gpufence.need.codec import need_configmap
from kube import ClientSettings, JsonObject, KubeError, PatchType, connect, core
from simulator.controlplane import ControlPlane
from tests.support.observing import Beside, eventually
from tests.support.site import run
from tools import ROOT
from tools.manifests import all_of, own_overlay

Objects = dict[tuple[str, str], dict[str, Any]]
TRANSIENT = re.compile(r"^(event|lease|controllerrevision|endpoints|endpointslice)")
WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})


def rendered(plane: ControlPlane, folder: Path) -> Objects:
    items = all_of(plane.kubectl("kustomize", str(folder)).stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in items}


class Kustomize:
    """Renders the base with components, each set of them once."""

    def __init__(self, kubectl: Path, folder: Path) -> None:
        self._kubectl, self._folder = kubectl, folder
        self._rendered: dict[tuple[str, ...], str] = {}

    def __call__(self, chosen: tuple[str, ...]) -> Objects:
        if chosen not in self._rendered:
            here = self._folder / str(len(self._rendered))
            here.mkdir()
            command = [str(self._kubectl), "kustomize", str(own_overlay(here, sorted(chosen)))]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            self._rendered[chosen] = done.stdout
        items = all_of(self._rendered[chosen])
        return {(item["kind"], item["metadata"]["name"]): item for item in items}


def listed(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


def inventory(plane: ControlPlane) -> set[str]:
    """
    Name every object of the cluster but those that come and go by themselves.

    A kind may go between the question which there are and the one for what there is of it.
    """
    answer = ["", ""]

    def all_is_listed() -> bool:
        kinds = plane.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        done = plane.kubectl(
            *("get", ",".join(kinds), "--all-namespaces", "--ignore-not-found"),
            *("-o", "custom-columns=:.kind,:.metadata.namespace,:.metadata.name", "--no-headers"),
            check=False,
        )
        answer[:] = done.stdout, done.stderr
        return done.returncode == 0

    assert eventually(all_is_listed), answer
    lines = {" ".join(line.split()) for line in answer[0].lower().splitlines()}
    return {line for line in lines if line and not TRANSIENT.match(line)}


WHITEOUT = ".wh."
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" '
    '&& exec chroot --userspec="$1" "$0" /usr/bin/env -i "$@"'
)


@dataclass(frozen=True)
class Unpacked:
    root: Path
    config: dict[str, Any]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image as its user, on its root, which is read-only."""
        script = READ_ONLY.replace('"$@"', '"${@:2}"')
        environment = self.config["config"]["Env"]
        return subprocess.run(
            [
                *("unshare", "--mount", "--fork", "bash", "-c", script),
                *(str(self.root), self.config["config"]["User"], *environment, *command),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]


def unpack(archive: Path, folder: Path) -> Unpacked:
    """Put the layers of a docker-archive upon each other."""
    layers = folder / "layers"
    layers.mkdir()
    subprocess.run(["tar", "--extract", "-f", archive, "-C", layers], check=True)
    (manifest,) = json.loads((layers / "manifest.json").read_text(encoding="utf-8"))
    root = folder / "root"
    root.mkdir()
    for layer in manifest["Layers"]:
        _apply(layers / layer, root)
    config = json.loads((layers / manifest["Config"]).read_text(encoding="utf-8"))
    shutil.rmtree(layers)
    return Unpacked(root, config)


def _apply(layer: Path, root: Path) -> None:
    with tarfile.open(layer) as archive:
        for name in archive.getnames():
            path = root / name
            if path.name.startswith(WHITEOUT):
                gone = path.with_name(path.name.removeprefix(WHITEOUT))
                if gone.is_dir() and not gone.is_symlink():
                    shutil.rmtree(gone)
                else:
                    gone.unlink(missing_ok=True)
    # tar itself, since it keeps owners and modes, as runtimes do.
    subprocess.run(
        ["tar", "--extract", "--same-owner", "--exclude", f"{WHITEOUT}*", "-f", layer, "-C", root],
        check=True,
    )


_NODE = "uninstalled"


def left_by_programs(plane: ControlPlane) -> None:
    """Make what agents make while they run: what models have needed."""
    kept: dict[str, Any] = {"name": need_configmap(_NODE), "namespace": names.SYSTEM_NAMESPACE}
    kept["labels"] = {"app.kubernetes.io/name": names.NEED_LABEL}
    items: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept}]
    plane.kubectl("create", "-f", "-", stdin=listed(items))


def documented(beginning: str) -> list[str]:
    """Return the manual's command that begins so, without its first word."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"`{beginning}[^`]*`", page)
    assert found is not None
    return shlex.split(found.group().strip("`"))[1:]


ACCOUNTS = frozenset({"gpufence-certs", names.CERTS_INSTALL, "gpufence-doctor"})


class Kubelet(Beside):
    """Runs each pod of these accounts once, with that account's rights, and reports its end."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane
        self.done: dict[str, subprocess.CompletedProcess[str]] = {}
        self._seen: set[str] = set()

    def run(self) -> None:
        with connect(ClientSettings(kubeconfig=str(self._plane.kubeconfig()))) as client:
            while not self.over.wait(0.1):
                for pod in client.list(core("pods")).items:
                    if self._is_new(pod):
                        self._seen.add(pod["metadata"]["uid"])
                        phase = self._play(pod)
                        path = core("namespaces", _where(pod), "pods", pod["metadata"]["name"])
                        status = {"status": {"phase": phase}}
                        with suppress(KubeError):  # it may have deleted itself
                            client.patch(f"{path}/status", status, PatchType.MERGE)

    def _is_new(self, pod: JsonObject) -> bool:
        metadata = pod["metadata"]
        return (
            pod["spec"].get("serviceAccountName") in ACCOUNTS
            and pod["status"].get("phase") == "Pending"
            and "deletionTimestamp" not in metadata
            and metadata["uid"] not in self._seen
        )

    def _play(self, pod: JsonObject) -> str:
        account = pod["spec"]["serviceAccountName"]
        token = self._plane.service_account_token(_where(pod), account)
        config = self._plane.token_kubeconfig(f"{account}-{uuid4().hex[:8]}", token)
        (container,) = pod["spec"]["containers"]
        command = (*container["command"], *container.get("args", ()))
        environment = {"KUBECONFIG": str(config), "GPUFENCE_NAMESPACE": _where(pod)}
        self.done[account] = run(command, environment | {"GPUFENCE_CERTS_WAIT_SECONDS": "0"})
        return "Failed" if self.done[account].returncode else "Succeeded"


def _where(pod: JsonObject) -> str:
    return str(pod["metadata"]["namespace"])
