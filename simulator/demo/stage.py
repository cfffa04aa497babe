"""
Everything the story needs, as real processes: control plane, certificates, webhook, GPU node.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence import names
from simulator.controlplane import Assets, ControlPlane, Options
from simulator.demo.manifests import HOOKS, objects, pointing_to
from simulator.demo.narrator import run
from simulator.demo.processes import WebhookProcess
from simulator.node import Dialect, NodeOptions, Sharing, SimulatedNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.progress import Progress

NODE = "gpu-1"
CARDS = "2xT4"


@dataclass(frozen=True)
class Stage:
    plane: ControlPlane
    node: SimulatedNode
    folder: Path


@contextmanager
def built(progress: Progress) -> Iterator[Stage]:
    """
    Build the stage, and take it down again however the story ends.
    """
    assets = Assets.from_environment(os.environ)
    options = Options(scheduler=True, controller_manager=True)
    with (
        tempfile.TemporaryDirectory(prefix="gpufence-demo-") as name,
        ControlPlane.start(assets, options, progress) as plane,
    ):
        folder = Path(name)
        with progress.step(f"registering node {NODE} with two simulated T4 cards"):
            node = SimulatedNode(_node_options(plane))
            node.start()
        try:
            with _gpufence(plane, folder, progress):
                yield Stage(plane, node, folder)
        finally:
            node.stop()


def _node_options(plane: ControlPlane) -> NodeOptions:
    return NodeOptions(
        kubeconfig=plane.node_kubeconfig(NODE),
        admin_kubeconfig=plane.kubeconfig(),
        name=NODE,
        cards=CARDS,
        sharing=Sharing(Dialect.GPUSHARE),
        gfd=True,
        write_cards=True,
    )


@contextmanager
def _gpufence(plane: ControlPlane, folder: Path, progress: Progress) -> Iterator[None]:
    """
    Install gpufence: its manifests, its certificates, and its webhook.
    """
    items = objects("webhook")
    hooks = [item for item in items if item["kind"] == HOOKS]
    with progress.step("installing gpufence: manifests, certificates, webhook"):
        plane.kubectl("create", "namespace", names.SYSTEM_NAMESPACE)
        _apply(plane, items)
        _certificates(plane)
        _project(plane, folder)
        webhook = WebhookProcess(_webhook_environment(plane, folder), folder / "webhook.log")
    with webhook:
        with progress.step("pointing the API server to the webhook"):
            _apply(plane, [pointing_to(item, webhook.address) for item in hooks])
            _certificates(plane)
        yield


def _apply(plane: ControlPlane, items: list[dict[str, object]]) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=listed)


def _certificates(plane: ControlPlane) -> None:
    """
    Let gpufence's own program issue the certificates and hand the CA to the API server.
    """
    environment = _environment(plane.kubeconfig()) | {
        "GPUFENCE_CERTS_ADDRESSES": "127.0.0.1",
        "GPUFENCE_CERTS_SETTLE_SECONDS": "1",
    }
    run([sys.executable, "-m", "certs", "ensure"], environment)


def _project(plane: ControlPlane, folder: Path) -> None:
    """
    Put the Secret's keys into the webhook's folder, as a kubelet would mount them.
    """
    where = ("-n", names.SYSTEM_NAMESPACE, "-o", "json")
    secret = json.loads(plane.kubectl("get", "secret", names.TLS_SECRET, *where).stdout)
    for key, value in secret["data"].items():
        path = folder / key
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(value))


def _webhook_environment(plane: ControlPlane, folder: Path) -> dict[str, str]:
    token = plane.service_account_token(names.SYSTEM_NAMESPACE, names.WEBHOOK_SERVICE)
    return _environment(plane.token_kubeconfig("webhook", token)) | {
        "GPUFENCE_TLS_DIR": str(folder),
        "GPUFENCE_DRAIN_SECONDS": "0",
    }


def _environment(kubeconfig: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)}
