"""A cluster with the controller's rights, GPU nodes, and the controller as a real process."""

import http.client
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from gpufence import names
from gpufence.idle import ReleaseNote, WakeBy, read_note
from gpufence.need import NodeNeed, need_configmap, write_need
from gpufence.need.profile import KIND
from kube import (
    ClientSettings,
    ForbiddenError,
    JsonObject,
    NotFoundError,
    PatchType,
    connect,
    core,
    group,
)
from kube.informers.reflector import Reflector
from kube.kinds import ApiKind
from kube.owners import ApiOwner
from kube.watch import ChangeType, Source
from kube.workloads import read_owner
from simulator.controlplane import ControlPlane
from tests.support.controller.gate import PlayedAgents, PlayedNodes
from tests.support.objects import deployment, policy
from tests.support.observing import wait_until
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess
from tests.support.site import KINDS, RIGHTS, PlaneSite, wait_until_enforced
from tests.support.tree import moved
from tools.manifests import COMPONENTS
from tools.manifests import objects as manifests

QUICK = {
    "GPUFENCE_PASS_SECONDS": "0.2",
    "GPUFENCE_KINDS_SECONDS": "1",
    "GPUFENCE_PROFILE_SECONDS": "0.2",
    "GPUFENCE_REQUEST_SECONDS": "1",
    "GPUFENCE_AGENT_SECONDS": "1",
    "GPUFENCE_LEASE_SECONDS": "4",
    "GPUFENCE_LEASE_RENEW_SECONDS": "3",
    "GPUFENCE_LEASE_RETRY_SECONDS": "0.3",
    "GPUFENCE_IDLE_SECONDS": "1",
    "GPUFENCE_RELEASE_AFTER_SECONDS": "2",
    "GPUFENCE_RELEASE_LEAST_SECONDS": "0.5",
    "GPUFENCE_RELEASE_NOTICE_SECONDS": "0.5",
    "GPUFENCE_RELEASE_WARM_UP_SECONDS": "0",
    "GPUFENCE_RELEASE_PEACE_SECONDS": "0",
    "GPUFENCE_RELEASE_FREE_SECONDS": "0.5",
    "GPUFENCE_RELEASE_WAITING_SECONDS": "0",
    "GPUFENCE_RELEASE_PER_MINUTE": "1000",
    "GPUFENCE_RELEASE_SUSPEND_PODS": "10000",
}


class ControllerProcess(ServingProcess):
    """Runs `python -m controller`; use it as a context manager."""

    def __init__(self, **settings: str) -> None:
        listen = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"}
        super().__init__(("controller", "run"), {**listen, **QUICK, **settings})

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port_of('statusListen')}"

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        port = self.port_of("statusListen")
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def activity(self, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
        status, body = self.get(f"/v1/activity/{path}", token)
        return status, json.loads(body)

    def owners(self) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(self.get("/v1/owners")[1])
        return page

    def owner(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what it shows of an owner; nothing where it shows none."""
        found = self.owners()["owners"]
        keys = ("namespace", "name")
        return next(
            (item for item in found if [item[key] for key in keys] == [namespace, name]), {}
        )

    def why_never(self, namespace: str, name: str) -> str:
        """Wait until it is said why an owner is never released."""
        self.wait_until_leading()

        def said() -> str:
            shown = self.owner(namespace, name)
            words = str(shown.get("why", ""))
            early = "too old" in words or "has not been read yet" in words
            return "" if shown.get("way") != "never" or early else words

        wait_until(said, self.owners)
        return said()

    def metrics(self) -> dict[str, float]:
        """Return every line of /metrics by its name and labels."""
        _, page = self.get("/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def acts(self, step: str, outcome: str = "done") -> int:
        line = f'gpufence_controller_acts_total{{step="{step}",outcome="{outcome}"}}'
        return int(self.metrics().get(line, 0))

    def wait_until_leading(self) -> None:
        wait_until(
            lambda: (
                self.metrics().get("gpufence_controller_leader")
                and self.metrics().get("gpufence_controller_fresh")
            ),
            "it neither leads nor knows the cluster",
        )


COMPONENT = COMPONENTS / "idle-release"
DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)
_QUIET_SECONDS = 0.5
_OWNERS = ("deployments", "statefulsets", "daemonsets", "replicasets")
PROFILE = ApiKind(names.PROFILE_GROUP, KIND, names.PROFILES)
PROFILES = PROFILE.everywhere


class ControllerSite(PlaneSite):
    """`system` is where the shipped rights are applied, in a namespace of its own."""

    def __init__(self, plane: ControlPlane, system: str) -> None:
        super().__init__(plane, system)
        self.played = PlayedNodes(self.admin, f"one-{system}", f"two-{system}")
        self.agents = PlayedAgents(self.played)
        self.one, self.two = self.played.nodes

    def install(self) -> None:
        """
        Apply what the component ships, but for its own Deployment; nodes that other tests have
        left would take pods that nobody runs there.
        """
        for item in self.admin.list(core("nodes")).items:
            if item["metadata"]["name"] not in self.played.nodes:
                self.admin.delete(core("nodes", item["metadata"]["name"]))
        self._apply_all(manifests(COMPONENT))
        self.allow("release")
        self._wait_for_policy()

    def _wait_for_policy(self) -> None:
        """An API server holds nobody to a policy until a moment after it was made."""
        self.deploy(self.system, "refused", 0)
        settings = ClientSettings(kubeconfig=str(self.kubeconfig_of(names.CONTROLLER)))
        with connect(settings) as client:

            def refused() -> bool:
                try:
                    client.patch(DEPLOYMENTS.path(self.system, "refused"), {}, PatchType.MERGE)
                except ForbiddenError as error:
                    return "may change nothing in namespace" in str(error)
                return False

            wait_until(refused, "the policy is not in force")
        self.admin.delete(DEPLOYMENTS.path(self.system, "refused"))

    def install_profiles(self) -> None:
        """The same of the component that makes profiles, until the API server serves them."""
        self._apply_all(manifests(COMPONENTS / "need"))
        wait_until(lambda: self.serves(PROFILES), "profiles are not served")

    def _apply_all(self, items: list[JsonObject]) -> None:
        kinds = RIGHTS | KINDS.keys() | {"Lease", "CustomResourceDefinition"}
        chosen = [moved(item, self.system) for item in items if item["kind"] in kinds]
        text = json.dumps(chosen).replace(names.SYSTEM_NAMESPACE, self.system)
        self.apply(*json.loads(text))
        wait_until_enforced(self)

    def remember(self, need: NodeNeed) -> None:
        """Write what a node remembers, as its agent does."""
        self.remember_text(need_configmap(need.node), write_need(need))

    def remember_text(self, name: str, text: str) -> None:
        labels = {"app.kubernetes.io/name": names.NEED_LABEL}
        body = {"metadata": {"name": name, "labels": labels}, "data": {names.NEED_KEY: text}}
        path = core("namespaces", self.system, "configmaps")
        try:
            self.admin.patch(f"{path}/{name}", body, PatchType.MERGE)
        except NotFoundError:
            self.admin.post(path, body)

    def profile(self, namespace: str, name: str) -> JsonObject:
        """Return a profile as it is, nothing where there is none."""
        try:
            return self.admin.get(PROFILE.path(namespace, name))
        except NotFoundError:
            return {}

    def say(self, namespace: str, name: str, **spec: str) -> None:
        """Change a profile's spec, as people do."""
        self.admin.patch(PROFILE.path(namespace, name), {"spec": spec}, PatchType.MERGE)

    def allow(self, rung: str) -> None:
        """Turn the kill switch."""
        item = policy(self.system, "evict")
        item["data"][names.POLICY_MAX_IDLE] = rung
        self.apply(item)

    def controller(self, **settings: str) -> ControllerProcess:
        """Return a controller that runs with the shipped rights."""
        return ControllerProcess(
            **{
                "KUBECONFIG": str(self.kubeconfig_of(names.CONTROLLER)),
                "GPUFENCE_NAMESPACE": self.system,
                "GPUFENCE_AGENTS": self.agents.setting_of(),
                "GPUFENCE_IDENTITY": f"controller-{uuid4().hex[:6]}",
                **settings,
            }
        )

    def fence(self, namespace: str, idle: str | None = "release", **annotations: str) -> None:
        """Label a namespace, for the measuring and for what becomes of idle GPUs there."""
        labels = {names.MODE: "observe", names.IDLE: idle}
        said = {f"gpufence.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        body = {"metadata": {"labels": labels, "annotations": said}}
        self.admin.patch(core("namespaces", namespace), body, PatchType.MERGE)

    def deploy(self, namespace: str, name: str, replicas: int = 1, **more: Any) -> JsonObject:
        """Make a Deployment of workers that ask for a third of a card each."""
        return self.admin.post(
            group("apps/v1", "namespaces", namespace, "deployments"),
            worker(name, replicas, **more),
        )

    def owner(self, namespace: str, name: str, kind: ApiKind = DEPLOYMENTS) -> ApiOwner:
        return read_owner(self.admin, kind, namespace, name)

    def replicas(self, namespace: str, name: str, kind: ApiKind = DEPLOYMENTS) -> int | None:
        return self.owner(namespace, name, kind).replicas

    def note(self, namespace: str, name: str, kind: ApiKind = DEPLOYMENTS) -> ReleaseNote | None:
        text = self.owner(namespace, name, kind).annotations.get(names.RELEASED)
        return None if text is None else read_note(text)

    @contextmanager
    def history(self, namespace: str, name: str) -> Iterator[list[int]]:
        """Follow what an owner wants from here on, each change once."""
        seen = _History()
        source = Source(
            path=DEPLOYMENTS.path(namespace),
            keep=lambda item: int(item["spec"]["replicas"]),
            query={"fieldSelector": f"metadata.name={name}"},
        )
        reflector = Reflector(self.admin, source, seen)
        reflector.start()
        assert reflector.wait_until_synced(PATIENCE_SECONDS)
        try:
            yield seen.replicas
        finally:
            reflector.stop()

    def phase(self, namespace: str, name: str, kind: ApiKind = DEPLOYMENTS) -> str:
        note = self.note(namespace, name, kind)
        return "" if note is None else str(note.phase)

    def outlast(self, namespace: str, name: str = "witness") -> None:
        """
        Wait until an owner that is made now has been released: whoever was there before it, and
        may go, has gone by then.
        """
        made = worker(name)
        made["metadata"]["annotations"] = {names.WAKE: WakeBy.MANUAL}
        self.admin.post(DEPLOYMENTS.path(namespace), made)
        wait_until(lambda: self.phase(namespace, name) == "released", "the witness stays")

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Scale as a person or another program would."""
        self.plane.kubectl("scale", "-n", namespace, f"deploy/{name}", f"--replicas={replicas}")

    def wait_for_pods(self, namespace: str, count: int, phase: str = "Running") -> None:
        wait_until(lambda: count == len(self.pods(namespace, phase)), "not so many pods")

    def wait_until_quiet(self, namespace: str, name: str) -> None:
        """Wait until Kubernetes' own controllers have said all they have to say of a Deployment."""

        def quiet() -> bool:
            before = self.owner(namespace, name).version
            time.sleep(_QUIET_SECONDS)
            return before == self.owner(namespace, name).version

        wait_until(quiet)

    def pods(self, namespace: str, phase: str = "Running") -> list[JsonObject]:
        listed = self.admin.list(core("namespaces", namespace, "pods")).items
        return [item for item in listed if item.get("status", {}).get("phase") == phase]

    def events(self, namespace: str, reason: str, kind: str = "Deployment") -> list[str]:
        """Return what was said of owners."""
        listed = self.admin.list(core("namespaces", namespace, "events")).items
        return [
            str(item["message"])
            for item in listed
            if item["reason"] == reason and item["involvedObject"]["kind"] == kind
        ]

    def remove(self, namespace: str) -> None:
        """Take the owners of a namespace away, and their pods."""
        apps = group("apps/v1", "namespaces", namespace)
        jobs = group("batch/v1", "namespaces", namespace, "jobs")
        for path in (*(f"{apps}/{kind}" for kind in _OWNERS), jobs):
            self.admin.delete(path, None, {"propagationPolicy": "Background"})
        self.admin.delete(core("namespaces", namespace, "pods"))
        wait_until(lambda: not self.admin.list(core("namespaces", namespace, "pods")).items)


class _History:
    def __init__(self) -> None:
        self.replicas: list[int] = []

    def replace(self, objects: Sequence[int]) -> None:
        for replicas in objects:
            self.apply("ADDED", replicas)

    def apply(self, change: ChangeType, item: int) -> None:
        del change
        if self.replicas[-1:] != [item]:
            self.replicas.append(item)


def worker(name: str, replicas: int = 1, units: int = 5, **pod_spec: Any) -> JsonObject:
    """Make a Deployment whose pods ask for a part of a card, wherever it is."""
    made = deployment(name, replicas)
    spec = made["spec"]["template"]["spec"]
    limits = {names.GPUSHARE_MEMORY: str(units)}
    spec["containers"][0]["resources"] = {"limits": limits}
    spec |= {"tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0}
    spec |= pod_spec
    return made
