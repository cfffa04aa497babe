"""
Real KEDA, a real HorizontalPodAutoscaler and a real broker around workers on simulated cards.

All times are shorter than in a cluster by one factor, `PACE`: how long a message takes, how long a
worker starts, the target, KEDA's and the autoscaler's periods, and how often agents look. So what
is measured in seconds here is said in seconds of the cluster that it stands for. Two things stay as
they are: the second for which the controller remembers what an agent said, and the tenth of one
that a sample of the simulated driver takes.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gpufence import names
from kube import JsonObject, KubeError, core, fetch_page, group
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.controlplane.processes import GuardedProcess, Surroundings
from simulator.controlplane.processes import wait_until as wait_until_up
from simulator.keda import Keda
from simulator.keda.build import ensure
from simulator.keda.programs import free_ports
from simulator.node import NodeOptions, SimulatedNode
from simulator.progress import Progress
from simulator.workload.stomp import BrokerError, StompClient
from tests.keda.model import MOST, START_SECONDS
from tests.support.agent.node_site import AgentProcess, NodeSite
from tests.support.controller.site import COMPONENT, ControllerProcess
from tests.support.observing import wait_until
from tests.support.programs import Prometheus, Target, prometheus
from tests.support.running import program
from tests.support.site import PATIENCE_SECONDS, RIGHTS
from tools import ROOT
from tools.manifests import objects as manifests

LOOPBACK = "127.0.0.1"
BROKER_SECONDS = 60.0
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
INSTALL = "apt-get install --no-install-recommends rabbitmq-server"


def missing() -> list[str]:
    """Return the Debian packages that are not there."""
    places = {"rabbitmq-server": RABBITMQ, "prometheus": program("prometheus")}
    return [name for name, path in places.items() if not path.exists()]


class Broker:
    """A running RabbitMQ: where STOMP, AMQP and its metrics are."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(5)
        self.stomp, self.amqp, self.metrics, self._distribution, self._epmd = ports
        self._folder = folder / "rabbitmq"
        self._folder.mkdir()

    @property
    def address(self) -> str:
        return f"amqp://guest:guest@{LOOPBACK}:{self.amqp}/"

    @contextmanager
    def running(self, pace: float) -> Iterator[None]:
        """Run it; what it counts every five seconds it counts by so much more often."""
        plugins = self._folder / "plugins"
        plugins.write_text("[rabbitmq_stomp,rabbitmq_prometheus].\n")
        config = self._folder / "rabbitmq.conf"
        lines = (
            f"listeners.tcp.1 = {LOOPBACK}:{self.amqp}",
            f"stomp.listeners.tcp.1 = {LOOPBACK}:{self.stomp}",
            f"prometheus.tcp.ip = {LOOPBACK}",
            f"prometheus.tcp.port = {self.metrics}",
            "prometheus.return_per_object_metrics = true",
            f"collect_statistics_interval = {int(5000 / pace)}",
            "log.console = true",
            "log.console.level = warning",
        )
        config.write_text("\n".join(lines) + "\n")
        environment = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": f"gpufence-{self.amqp}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": LOOPBACK,
        }
        process = GuardedProcess(
            [str(RABBITMQ)],
            Surroundings(self._folder, environment),
            log=self._folder / "rabbitmq.log",
        )
        try:
            wait_until_up(self._is_ready, [process], BROKER_SECONDS, "RabbitMQ took a connection")
            yield
        finally:
            process.end()
            self._stop_epmd()

    def client(self) -> StompClient:
        return StompClient(LOOPBACK, self.stomp)

    def _is_ready(self) -> bool:
        try:
            self.client().close()
            urllib.request.urlopen(f"http://{LOOPBACK}:{self.metrics}/metrics", timeout=5).close()
        except (BrokerError, OSError):
            return False
        return True

    def _stop_epmd(self) -> None:
        """Erlang's directory of nodes outlives them; it ends when it is asked to."""
        try:
            with socket.create_connection((LOOPBACK, self._epmd), 2) as asked:
                asked.sendall(b"\x00\x01k")
                asked.recv(2)
        except OSError:
            return


def packages_line(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} must be installed: {INSTALL}"


PACE = 5.0
CARDS = "8xT4"
NODE = "gpu-1"
EXAMPLES = ROOT / "deploy" / "examples" / "keda"
SECRET = "rabbitmq"
SIGHT_SECONDS = 0.5
HPA = (
    f"--horizontal-pod-autoscaler-sync-period={15 / PACE:g}s",
    f"--horizontal-pod-autoscaler-downscale-stabilization={300 / PACE:g}s",
    f"--horizontal-pod-autoscaler-initial-readiness-delay={30 / PACE:g}s",
)
PLANE = PlaneOptions(
    scheduler=True, controller_manager=True, aggregation=True, controller_options=HPA
)
AGENT = {
    "GPUFENCE_INTERVAL_SECONDS": f"{1 / PACE:g}",
    "GPUFENCE_LIST_SECONDS": f"{2 / PACE:g}",
    "GPUFENCE_ACTIVITY_SECONDS": f"{5 / PACE:g}",
    "GPUFENCE_BUSY_MEAN_SECONDS": f"{60 / PACE:g}",
    "GPUFENCE_IDLE_SECONDS": f"{60 / PACE:g}",
    "GPUFENCE_NVML_DEADLINE_SECONDS": "10",
}
CONTROLLER = {"GPUFENCE_PASS_SECONDS": "0.5"}
_PERIOD = round(15 / PACE)
_UP = [
    {"type": "Pods", "value": 4, "periodSeconds": _PERIOD},
    {"type": "Percent", "value": 100, "periodSeconds": _PERIOD},
]
_DOWN = [{"type": "Percent", "value": 100, "periodSeconds": _PERIOD}]


class Sight(NamedTuple):
    """A Deployment at a moment: what is wanted of it, and how many of its pods no node takes."""

    at: float
    wanted: int
    pending: int


class KedaSite(NodeSite):
    """A fenced namespace for workers, and everything that scales them."""

    broker: Broker
    prometheus: Prometheus
    agent_process: AgentProcess
    team: str

    def install(self) -> None:
        super().install()
        kinds = RIGHTS | {"Lease"}
        self.apply(*(item for item in manifests(COMPONENT) if item["kind"] in kinds))

    def controller(self) -> ControllerProcess:
        """Return a controller with the shipped rights, told where the agent is."""
        return ControllerProcess(
            KUBECONFIG=str(self.kubeconfig_of(names.CONTROLLER)),
            GPUFENCE_NAMESPACE=self.system,
            GPUFENCE_AGENTS=f"{NODE}=http://{LOOPBACK}:{self.agent_process.port}",
            **CONTROLLER,
        )

    def deploy(self, name: str, *, units: int = 1, grace_seconds: float = 30.0) -> None:
        """Make a Deployment of no workers yet, and the queue of its name."""
        with self.broker.client() as client:
            client.subscribe(name)
        self.apply(_deployment(name, self.team, self._script(name), units, grace_seconds))

    def _script(self, queue: str) -> str:
        address = f"{LOOPBACK}:{self.broker.stomp}"
        return f"hold 200Mi; wait {START_SECONDS / PACE:g}s; serve {address}/{queue}"

    def example(self, name: str, controller: str) -> list[JsonObject]:
        """Return the objects of deploy/examples for a Deployment."""
        return list(yaml.safe_load_all(self._adapted("scaled-object.yaml", name, controller)))

    def measuring(self, name: str) -> JsonObject:
        """Return the example's other trigger, by which Prometheus knows what a message takes."""
        trigger: JsonObject = yaml.safe_load(self._adapted("prometheus-trigger.yaml", name, ""))
        trigger["metadata"]["serverAddress"] = self.prometheus.url
        return trigger

    def ceiling(self, name: str, controller: str) -> int:
        """Return how many replicas there are or fit; 0 while the controller does not know."""
        url = f"{controller}/v1/room/{self.team}/deployments/{name}"
        try:
            said = json.loads(fetch_page(url, PATIENCE_SECONDS, most_bytes=4096))
        except KubeError:
            return 0
        return int(said["replicas"] + said["room"])

    def _adapted(self, file: str, name: str, controller: str) -> str:
        text = (EXAMPLES / file).read_text(encoding="utf-8")
        text = text.replace("http://gpufence-controller.gpufence-system:8080", controller)
        return text.replace("vision", self.team).replace("quality", name)

    def scale(
        self,
        name: str,
        controller: str,
        *,
        target: float = 5.0,
        message: float = 2.0,
        most: int = MOST,
        cooldown: float = 900.0,
        busy: bool = True,
        measured: bool = False,
    ) -> None:
        """
        Apply the example at this pace; or the obvious rule: the first trigger alone, with the
        window that nobody has thought of. `measured`: Prometheus is asked, and nobody says how
        long a message takes.
        """
        made = self.example(name, controller)
        spec = made[-1]["spec"]
        spec["maxReplicaCount"] = most
        if measured:
            spec["triggers"][0] = self.measuring(name)
            spec["triggers"][0]["metadata"]["threshold"] = f"{target / PACE:g}"
        else:
            spec["triggers"][0]["metadata"]["value"] = f"{target / message:g}"
        window = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        seconds = window["stabilizationWindowSeconds"] if busy else 300
        down = {"stabilizationWindowSeconds": round(seconds / PACE), "policies": _DOWN}
        behavior = {"scaleUp": {"policies": _UP}, "scaleDown": down}
        spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] = behavior
        spec["pollingInterval"] = 1
        spec["cooldownPeriod"] = spec["initialCooldownPeriod"] = round(cooldown / PACE)
        if not busy:
            del spec["triggers"][1]
        self.apply(*made)

    def query(self, promql: str) -> float:
        """Ask Prometheus for one number."""
        return self.prometheus.query(promql)[0].value

    def sight(self, name: str) -> Sight:
        path = group("apps/v1", "namespaces", self.team, "deployments", name)
        wanted = self.admin.get(path)["spec"]["replicas"]
        return Sight(time.time(), wanted, sum(map(_finds_no_node, self.pods(name))))

    def pods(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of a Deployment that nobody has asked to go."""
        chosen = {"labelSelector": f"app={name}"}
        found = self.admin.get(core("namespaces", self.team, "pods"), chosen)["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def end(self, *deployments: str) -> None:
        """Take Deployments away, and what scales them, and wait until their pods are gone."""
        for name in deployments:
            self.drop(group("keda.sh/v1alpha1", "namespaces", self.team, "scaledobjects", name))
            self.drop(group("apps/v1", "namespaces", self.team, "deployments", name))
        for name in deployments:
            wait_until(partial(self._is_empty, name), f"pods of {name} stay")

    def _is_empty(self, name: str) -> bool:
        chosen = {"labelSelector": f"app={name}"}
        return not self.admin.get(core("namespaces", self.team, "pods"), chosen)["items"]


class Watch:
    """Looks at Deployments until the block is left, twice a second."""

    def __init__(self, site: KedaSite, deployments: Sequence[str]) -> None:
        self._site = site
        self._sights: dict[str, list[Sight]] = {name: [] for name in deployments}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> dict[str, list[Sight]]:
        self._thread.start()
        return self._sights

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(SIGHT_SECONDS):
            for name, sights in self._sights.items():
                sights.append(self._site.sight(name))


@contextmanager
def running(assets: Assets, folder: Path, progress: Progress) -> Iterator[KedaSite]:
    """Start everything but the controller, in the order in which it is needed."""
    programs = ensure(assets, progress)
    with ExitStack() as undo:
        plane = undo.enter_context(ControlPlane.start(assets, PLANE, progress))
        options = NodeOptions(
            kubeconfig=plane.node_kubeconfig(NODE),
            admin_kubeconfig=plane.kubeconfig(),
            name=NODE,
            cards=CARDS,
        )
        node = undo.enter_context(SimulatedNode(options))
        site = undo.enter_context(KedaSite(plane, node, names.SYSTEM_NAMESPACE))
        plane.kubectl("create", "namespace", names.SYSTEM_NAMESPACE)
        site.install()
        site.broker = Broker(folder)
        with progress.step("starting RabbitMQ, Prometheus, an agent and KEDA"):
            undo.enter_context(site.broker.running(PACE))
            site.agent_process = undo.enter_context(site.agent(**AGENT))
            targets = {
                "rabbitmq": Target(f"{LOOPBACK}:{site.broker.metrics}"),
                "agent": Target(f"{LOOPBACK}:{site.agent_process.port}"),
            }
            site.prometheus = undo.enter_context(prometheus(folder, targets, 5 / PACE))
            undo.enter_context(Keda(plane, programs, folder))
        site.team = undo.enter_context(site.namespace("observe"))
        metadata = {"name": SECRET, "namespace": site.team}
        address = {"host": site.broker.address}
        site.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": address}
        )
        yield site


def _finds_no_node(pod: JsonObject) -> bool:
    """Tell whether the scheduler has said so, and not only not looked at the pod yet."""
    conditions = pod["status"].get("conditions", [])
    return any(item.get("reason") == "Unschedulable" for item in conditions)


def _deployment(
    name: str, namespace: str, script: str, units: int, grace_seconds: float
) -> JsonObject:
    container = {
        "name": "main",
        "image": "gpufence/workload",
        "args": [script],
        "resources": {"limits": {names.GPUSHARE_MEMORY: str(units)}},
    }
    pod = {
        "containers": [container],
        "terminationGracePeriodSeconds": max(2, round(grace_seconds / PACE)),
    }
    metadata = {"labels": {"app": name}, "annotations": {names.INJECTED: "nothing"}}
    text = json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": metadata, "spec": pod},
            },
        }
    )
    made: JsonObject = json.loads(text)
    return made
