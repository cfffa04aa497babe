"""Everything a story needs, as real processes, from the control plane to the controller."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gpufence import names
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.demo.narrator import StoryError, run
from simulator.demo.processes import DemoProgram
from simulator.node import NodeOptions, SimulatedNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simulator.progress import Progress

NODE = "gpu-1"
AGENT = "gpufence-agent"
HOOK_SECONDS = 30  # on a slow machine the 1 and 3 s of a cluster would let the story's pods pass
_PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "annotations": {names.MEMORY: "1Gi"}},
    "spec": {"containers": [{"name": "probe", "image": "none"}]},
}
HURRY = {
    "GPUFENCE_HOLD_SECONDS": "4",
    "GPUFENCE_GRACE_SECONDS": "2",
    "GPUFENCE_START_PAUSE_SECONDS": "0",
    "GPUFENCE_INTERVAL_SECONDS": "0.5",
}
CONTROLLER_HURRY = {
    "GPUFENCE_PASS_SECONDS": "0.5",
    "GPUFENCE_PROFILE_SECONDS": "0.5",
    "GPUFENCE_KINDS_SECONDS": "1",
    "GPUFENCE_LEASE_RETRY_SECONDS": "0.5",
}
SERVED_SECONDS = 30.0
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
HOOKS = "MutatingWebhookConfiguration"
_LEFT_OUT = frozenset(
    {"Deployment", "DaemonSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job", "CronJob"}
)


@dataclass(frozen=True)
class StagePlan:
    """
    What differs from story to story: the node's `cards`, and how they are called; `unit` is theirs,
    which `clients` pods share where it counts no memory, `components` are installed beside the
    base, `node` is what else the node is made of, and the rest are settings of the webhook, of the
    agent and of the controller, which has no part where there are none.
    """

    cards: str = "2xT4"
    cards_are: str = "two simulated T4 cards"
    unit: str = "GiB"
    clients: int = 1
    components: tuple[str, ...] = ()
    node: Mapping[str, Any] = field(default_factory=dict)
    webhook: Mapping[str, str] = field(default_factory=dict)
    agent: Mapping[str, str] = field(default_factory=dict)
    controller: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Stage:
    """
    `agent` is where the agent answers, `agent_environment` what a command on its node sees, and
    `controller` where that answers, empty without one.
    """

    plane: ControlPlane
    node: SimulatedNode
    folder: Path
    agent: str
    agent_environment: dict[str, str]
    controller: str = ""

    @property
    def plugin_environment(self) -> dict[str, str]:
        """Return where the plugin finds programs that are no pods here."""
        agents = {"GPUFENCE_AGENTS": f"{self.node.name}=http://{self.agent}"}
        controller = {"GPUFENCE_CONTROLLER": f"http://{self.controller}"} if self.controller else {}
        return agents | controller

    def fences(self, namespace: str) -> bool:
        """
        Return whether the API server knows by now that the pods of a namespace go to the webhook.
        """
        return f'"{names.INJECTED}"' in self._tried(namespace)

    def takes_pods(self, namespace: str) -> bool:
        """Return whether a namespace has by now what the API server wants there before any pod."""
        return bool(self._tried(namespace))

    def _tried(self, namespace: str) -> str:
        command = ("create", "--dry-run=server", "-n", namespace, "-f", "-", "-o", "json")
        return self.plane.kubectl(*command, stdin=json.dumps(_PROBE), check=False).stdout


@contextmanager
def built(progress: Progress, plan: StagePlan) -> Iterator[Stage]:
    """Build the stage, and take it down again however the story ends."""
    assets = Assets.from_environment(os.environ)
    options = PlaneOptions(scheduler=True, controller_manager=True)
    with (
        tempfile.TemporaryDirectory(prefix="gpufence-demo-") as name,
        ControlPlane.start(assets, options, progress) as plane,
    ):
        folder = Path(name)
        with progress.step(f"registering node {NODE} with {plan.cards_are}"):
            node = SimulatedNode(_node_options(plane, plan))
            node.start()
        try:
            with (
                _webhook(plane, folder, plan, progress),
                _agent(plane, node, folder, plan, progress) as agent,
            ):
                stage = Stage(plane, node, folder, agent.address, _node_environment(node))
                if plan.controller is None:
                    yield stage
                else:
                    with _controller(stage, plan.controller, progress) as controller:
                        yield replace(stage, controller=controller.address)
        finally:
            node.stop()


def _node_options(plane: ControlPlane, plan: StagePlan) -> NodeOptions:
    options = NodeOptions(
        kubeconfig=plane.node_kubeconfig(NODE),
        admin_kubeconfig=plane.kubeconfig(),
        name=NODE,
        cards=plan.cards,
        unit=plan.unit,
        clients=plan.clients,
    )
    return replace(options, **plan.node)


@contextmanager
def _webhook(
    plane: ControlPlane, folder: Path, plan: StagePlan, progress: Progress
) -> Iterator[None]:
    components = [f"components/{name}" for name in plan.components]
    items = _manifests("base/system", "base/webhook", "base/agent", *components)
    hooks = [item for item in items if item["kind"] == HOOKS]
    with progress.step("installing gpufence: manifests, certificates, webhook"):
        _apply(plane, items)
        kinds = [item for item in items if item["kind"] == "CustomResourceDefinition"]
        _wait_until_served(plane, [item["metadata"]["name"] for item in kinds])
        _certificates(plane)
        _project(plane, folder)
        environment = _webhook_environment(plane, folder) | {**plan.webhook}
        webhook = DemoProgram("webhook", environment, folder)
    with webhook:
        with progress.step("pointing the API server to the webhook"):
            _apply(plane, [_patient(_pointing_to(item, webhook.address)) for item in hooks])
            _certificates(plane)
        yield


def _wait_until_served(plane: ControlPlane, kinds: list[str]) -> None:
    for kind in kinds:
        until = time.monotonic() + SERVED_SECONDS
        while plane.kubectl("get", kind, check=False).returncode and time.monotonic() < until:
            time.sleep(0.1)


def _patient(item: dict[str, Any]) -> dict[str, Any]:
    for hook in item["webhooks"]:
        hook["timeoutSeconds"] = HOOK_SECONDS
    return item


@contextmanager
def _agent(
    plane: ControlPlane, node: SimulatedNode, folder: Path, plan: StagePlan, progress: Progress
) -> Iterator[DemoProgram]:
    token = plane.service_account_token(names.SYSTEM_NAMESPACE, AGENT, node=node.name)
    config = plane.token_kubeconfig(AGENT, token)
    with progress.step("starting the node's agent"):
        environment = _environment(config) | _node_environment(node) | HURRY | {**plan.agent}
        agent = DemoProgram("agent", environment, folder)
    with agent:
        yield agent


@contextmanager
def _controller(
    stage: Stage, settings: Mapping[str, str], progress: Progress
) -> Iterator[DemoProgram]:
    plane = stage.plane
    with progress.step("installing and starting the controller"):
        _apply(plane, _manifests("components/idle-release"))
        token = plane.service_account_token(names.SYSTEM_NAMESPACE, names.CONTROLLER)
        environment = {
            **_environment(plane.token_kubeconfig(names.CONTROLLER, token)),
            **stage.plugin_environment,
            **CONTROLLER_HURRY,
            **settings,
            "GPUFENCE_STATUS_LISTEN": "127.0.0.1:0",
        }
        controller = DemoProgram("controller", environment, stage.folder)
    with controller:
        yield controller


def _node_environment(node: SimulatedNode) -> dict[str, str]:
    return node.environment | {
        "PATH": os.environ["PATH"],
        "GPUFENCE_NODE": node.name,
        "GPUFENCE_STATUS_LISTEN": "127.0.0.1:0",
    }


def _apply(plane: ControlPlane, items: list[dict[str, object]]) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=listed)


def _certificates(plane: ControlPlane) -> None:
    """Let gpufence's own program issue the certificates and hand the CA to the API server."""
    environment = _environment(plane.kubeconfig()) | {
        "GPUFENCE_CERTS_ADDRESSES": "127.0.0.1",
        "GPUFENCE_CERTS_SETTLE_SECONDS": "1",
    }
    run([sys.executable, "-m", "certs", "ensure"], environment)


def _project(plane: ControlPlane, folder: Path) -> None:
    """Put the Secret's keys into the webhook's folder, as a kubelet would mount them."""
    where = ("-n", names.SYSTEM_NAMESPACE, "-o", "json")
    secret = json.loads(plane.kubectl("get", "secret", names.TLS_SECRET, *where).stdout)
    for key, value in secret["data"].items():
        path = folder / key
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(value))


def _webhook_environment(plane: ControlPlane, folder: Path) -> dict[str, str]:
    token = plane.service_account_token(names.SYSTEM_NAMESPACE, names.WEBHOOK_SERVICE)
    return _environment(plane.token_kubeconfig("webhook", token)) | {
        "GPUFENCE_LISTEN": "127.0.0.1:0",
        "GPUFENCE_STATUS_LISTEN": "127.0.0.1:0",
        "GPUFENCE_TLS_DIR": str(folder),
        "GPUFENCE_DRAIN_SECONDS": "0",
        "GPUFENCE_API_DEADLINE_SECONDS": f"{HOOK_SECONDS - 5}",
    }


def _environment(kubeconfig: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)}


def _manifests(*parts: str) -> list[dict[str, Any]]:
    """Return the objects of parts of the installation that mean something without containers."""
    items = [item for part in parts for item in _of_part(part)]
    return [item for item in items if item["kind"] not in _LEFT_OUT]


def _of_part(part: str) -> list[dict[str, Any]]:
    folder = DEPLOY / part
    if not folder.is_dir():
        raise StoryError(f"{folder} does not exist; run the demo from a checkout of gpufence")
    order = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    texts = [(folder / name).read_text(encoding="utf-8") for name in order]
    return [item for text in texts for item in yaml.safe_load_all(text) if item]


def _pointing_to(item: dict[str, Any], address: str) -> dict[str, Any]:
    for hook in item["webhooks"]:
        service = hook["clientConfig"].pop("service")
        hook["clientConfig"]["url"] = f"https://{address}{service['path']}"
    return item
