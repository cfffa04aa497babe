"""What the tests do with a cluster: the things a person does with kubectl."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpufence import names
from kube import core
from simulator.cluster import SimulatedCluster
from simulator.cluster.inside.containers import CTR
from simulator.cluster.setup import SIMULATED
from tests.support.observing import wait_until
from tests.support.site import AGENT, WEBHOOK, Site
from tools import ROOT

OVERLAY = str(ROOT / "deploy" / "overlays" / "simulated")
SYSTEM = ("--namespace", names.SYSTEM_NAMESPACE)
PATIENCE_SECONDS = 90.0

# An operator's patience is longer than a test's.
QUICK = (
    "GPUFENCE_GRACE_SECONDS=5",
    "GPUFENCE_HOLD_SECONDS=5",
    "GPUFENCE_START_PAUSE_SECONDS=3",
)

# Kinds of which tenants' own objects bear the name, or that only tell of the past.
PASSING = ("events", "events.events.k8s.io")

Json = dict[str, Any]


class RealSite(Site):
    """A cluster seen by its administrator."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster.kubeconfig, cluster.kubectl)
        self.cluster = cluster

    def install(self) -> None:
        """Apply the overlay, hurry the agent, and wait until all parts say that they are ready."""
        self.cluster.kubectl("apply", "-k", OVERLAY)
        self.settle()

    def settle(self) -> None:
        """Hurry the agent, and wait for what was applied."""
        self.system("set", "env", f"daemonset/{AGENT}", *QUICK)
        gone = f"clusterrole/{names.CERTS_INSTALL}"
        self.cluster.kubectl("wait", gone, "--for=delete", "--timeout=100s")
        self.system("rollout", "status", f"deployment/{WEBHOOK}", "--timeout=100s")
        self.system("rollout", "status", f"daemonset/{AGENT}", "--timeout=100s")

    def system(self, *arguments: str) -> str:
        """Run kubectl in gpufence's own namespace."""
        return self.cluster.kubectl(*SYSTEM, *arguments).stdout

    def answer(self, *arguments: str) -> str:
        """Run `kubectl gpufence` as administrator."""
        done = self.plugin(*arguments, COLUMNS="200")
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def namespace(self, mode: str | None = None, **annotations: str) -> Iterator[str]:
        """Lend a namespace once pods can be made in it."""
        with super().namespace(mode, **annotations) as name:
            account = core("namespaces", name, "serviceaccounts", "default")
            self.until(lambda: self.exists(account), f"{name} took pods")
            yield name

    def admitted(self, made: Json) -> Json:
        """Return an object as admission would leave it, without making it."""
        arguments = ("create", "--dry-run=server", "--output=json", "-f", "-")
        answer: Json = json.loads(self.cluster.kubectl(*arguments, stdin=json.dumps(made)).stdout)
        return answer

    def get(self, *arguments: str) -> Json:
        answer: Json = json.loads(self.cluster.kubectl("get", "--output=json", *arguments).stdout)
        return answer

    def pods(self, namespace: str, app: str, *, running: bool = True) -> list[Json]:
        """List an application's pods, those on their way out left out."""
        found = self.get("pods", "--namespace", namespace, "--selector", f"{APP}={app}")["items"]
        return [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and (not running or is_ready(pod))
        ]

    def pod_of(self, namespace: str, app: str) -> Json:
        """Wait for an application's only pod to run, and return it."""
        self.until(lambda: len(self.pods(namespace, app)) == 1, f"{app} ran")
        return self.pods(namespace, app)[0]

    def environment(self, pod: Json) -> dict[str, str]:
        """Read the environment of a pod's first process, as the kernel has it."""
        text = self.execute(pod, "python3", "-c", "print(open('/proc/1/environ').read())")
        pairs = (entry.partition("=") for entry in text.strip().split("\0") if entry)
        return {name: value for name, _, value in pairs}

    def execute(self, pod: Json, *command: str) -> str:
        where = ("--namespace", pod["metadata"]["namespace"], pod["metadata"]["name"])
        return self.cluster.kubectl("exec", *where, "--", *command).stdout

    def events(self, namespace: str, reason: str, kind: str = "Pod") -> list[Json]:
        """List the events about objects of one kind."""
        wanted = f"reason={reason},involvedObject.kind={kind}"
        items: list[Json] = self.get(
            "events", "--namespace", namespace, "--field-selector", wanted
        )["items"]
        return items

    def evict_greedy(self, namespace: str) -> Json:
        """Let a pod break its limit until it is evicted, and return the Event."""
        self.apply(deployment(namespace, "greedy", "hold 5Gi"))
        self.until(lambda: bool(self.events(namespace, names.EVICTED)), "a pod was evicted")
        return self.events(namespace, names.EVICTED)[0]

    def pulled(self, images: set[str]) -> set[str]:
        """Return which of these images the node fetched for gpufence's own pods."""
        said = (event["message"] for event in self.events(SYSTEM[1], "Pulled"))
        words = (text.split('"')[1] for text in said if text.startswith("Successfully pulled"))
        return images & set(words)

    def kill(self, pod: Json) -> None:
        """Kill a pod's container as a crash or the kernel would, past Kubernetes."""
        container = pod["status"]["containerStatuses"][0]["containerID"].partition("//")[2]
        done = self.cluster.inside(*CTR, "tasks", "kill", "--signal", "SIGKILL", container)
        assert 0 == done.returncode, done.stderr

    def everything(self) -> set[str]:
        """Name every object of the cluster that the API server lists."""
        resources = self.cluster.kubectl("api-resources", "--verbs=list", "--output=name").stdout
        kinds = ",".join(kind for kind in resources.split() if kind not in PASSING)
        every = ("--all-namespaces", "--output=name", "--ignore-not-found")
        return set(self.cluster.kubectl("get", kinds, *every).stdout.split())

    def diagnosis(self) -> str:
        """Collect what a person would look at after a failure."""
        questions = (
            ("get", "pods", "--all-namespaces", "--output=wide"),
            ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
            (*SYSTEM, "logs", "--prefix", "--tail=40", "--selector", f"{APP}={AGENT}"),
            (*SYSTEM, "logs", "--prefix", "--tail=20", "--selector", f"{APP}={WEBHOOK}"),
        )
        answers = [
            f"$ kubectl {' '.join(one)}\n{self.cluster.kubectl(*one, check=False).stdout}"
            for one in questions
        ]
        return "\n".join(answers)

    def until(
        self, ready: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS
    ) -> None:
        wait_until(ready, f"not within {seconds:.0f} s: {what}", seconds)


APP = "app.kubernetes.io/name"


def is_ready(pod: Json) -> bool:
    """Tell whether a pod's Ready condition holds."""
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def restarts(pod: Json) -> int:
    """Count how often a pod's container was started again."""
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


def notes(pod: Json) -> dict[str, str]:
    """Return a pod's annotations."""
    found: dict[str, str] = pod["metadata"].get("annotations", {})
    return found


IMAGE = "localhost/gpufence-workload:1"


def pod(namespace: str, name: str, *script: str, units: int = 3) -> Json:
    """Build a pod that asks for so many GiB and follows a script of the simulated workload."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {APP: name}},
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "args": list(script or ["hold 1Gi"]),
                    "env": [{"name": names.SIMULATOR_STATE, "value": "/simulator/state"}],
                    "resources": {"limits": {names.GPUSHARE_MEMORY: str(units)}},
                    "volumeMounts": [{"name": "simulator", "mountPath": "/simulator"}],
                }
            ],
            # What NVIDIA's runtime would bring by itself.
            "volumes": [
                {"name": "simulator", "hostPath": {"path": str(SIMULATED), "type": "Directory"}}
            ],
        },
    }


def deployment(namespace: str, name: str, *script: str, units: int = 3) -> Json:
    """Build a Deployment of one such pod."""
    template = pod(namespace, name, *script, units=units)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "selector": {"matchLabels": {APP: name}},
            "template": {"metadata": {"labels": {APP: name}}, "spec": template["spec"]},
        },
    }
