"""A control plane, a node, an agent, and the hands that do to them what the plan says."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from gpufence import names
from kube import (
    Client,
    ConflictError,
    NotFoundError,
    PatchType,
    core,
    group,
)
from simulator.controlplane import Assets, ControlPlane
from simulator.node import NodeOptions, RestartPauses, SimulatedNode
from tests.integration.agent.chaos.observer import Observer
from tests.integration.agent.chaos.people import EVICTING, MODES, SHIELD, Person
from tests.integration.agent.chaos.promise import Promise
from tests.integration.agent.chaos.truth import Blind, Start
from tests.support import objects
from tests.support.agent.node_site import Agent, NodeSite

NODE = "chaos"
CARDS = "T4,T4,T4"
PROMISE = Promise(
    interval_seconds=0.4,
    list_seconds=2.0,
    hold_seconds=2.0,
    short_hold_seconds=1.6,
    grace_seconds=3.0,
    give_back_seconds=2.0,
    lend_after_seconds=3.0,
)
START_PAUSE_SECONDS = 1.5
SETTINGS = {
    "GPUFENCE_INTERVAL_SECONDS": f"{PROMISE.interval_seconds}",
    "GPUFENCE_LIST_SECONDS": f"{PROMISE.list_seconds}",
    "GPUFENCE_HOLD_SECONDS": f"{PROMISE.hold_seconds}",
    "GPUFENCE_SHORT_HOLD_SECONDS": f"{PROMISE.short_hold_seconds}",
    "GPUFENCE_GRACE_SECONDS": f"{PROMISE.grace_seconds}",
    "GPUFENCE_GIVE_BACK": f"{PROMISE.give_back_seconds}",
    "GPUFENCE_LEND_AFTER": f"{PROMISE.lend_after_seconds}",
    "GPUFENCE_ACTIVITY_SECONDS": "1",
    "GPUFENCE_START_PAUSE_SECONDS": f"{START_PAUSE_SECONDS}",
    "GPUFENCE_REPEATED_HOLD_SECONDS": f"{PROMISE.hold_seconds}",
    "GPUFENCE_NVML_DEADLINE_SECONDS": "2",
    "GPUFENCE_NVML_RESTART_SECONDS": "0.2",
    "GPUFENCE_NVML_RESTART_LIMIT_SECONDS": "2",
    "GPUFENCE_NVML_AVOID_SECONDS": "3",
    "GPUFENCE_EVICTION_GRACE_SECONDS": "1",
    "GPUFENCE_TERMINATION_SECONDS": "6",
    "GPUFENCE_NODE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_EVENT_BURST": "1000",
}
READY_SECONDS = 6.0
"""A new agent has read its pods and its cards within that time, besides its pause."""


@dataclass(frozen=True)
class Stage:
    """Everything that runs, and what a plan does to it."""

    plane: ControlPlane
    site: NodeSite
    node: SimulatedNode
    agent: Agent
    observer: Observer
    client: Client

    def enter(self, person: Person) -> str:
        """Create a pod and have the observer know it before anybody can act on it."""
        manifest = {**person.manifest, "spec": {**person.manifest["spec"], "nodeName": NODE}}
        made = self.client.post(core("namespaces", person.namespace, "pods"), manifest)
        uid = str(made["metadata"]["uid"])
        self.observer.meet(uid, person.words)
        return uid

    def leave(self, person: Person, uid: str) -> None:
        """Delete a pod as its owner does, unless it is going already."""
        if self.observer.part(uid):
            path = core("namespaces", person.namespace, "pods", person.words.name)
            with suppress(NotFoundError, ConflictError):
                self.client.delete(path, {"gracePeriodSeconds": 1, "preconditions": {"uid": uid}})

    def blinded(self, blind: Blind) -> None:
        """Write down that the agent could not see, or not act."""
        self.observer.history.blind.append(blind)

    def restarted(self, stopped_at: float, ready_after: float, pause: float = 0.0) -> None:
        """Write down that all counting begins anew."""
        now = time.monotonic()
        start = Start(stopped_at, now, now + ready_after, pause)
        self.observer.history.starts.append(start)


@contextmanager
def staged() -> Iterator[Stage]:
    """Start everything, and end it whatever happens."""
    with ExitStack() as undo:
        plane = undo.enter_context(ControlPlane.start(Assets.from_environment(os.environ)))
        node = undo.enter_context(SimulatedNode(_node(plane)))
        site = undo.enter_context(NodeSite(plane, node, names.SYSTEM_NAMESPACE))
        client = site.admin
        for name, mode in {names.SYSTEM_NAMESPACE: None, **MODES}.items():
            client.post(core("namespaces"), objects.namespace(name, mode))
        for name in EVICTING:
            _shield(client, name)
        site.install()
        observer = undo.enter_context(Observer(node, client, PROMISE.lend_after_seconds))
        agent = undo.enter_context(Agent(lambda: site.agent(**SETTINGS)))
        stage = Stage(plane, site, node, agent, observer, client)
        stage.restarted(0.0, START_PAUSE_SECONDS + READY_SECONDS, START_PAUSE_SECONDS)
        yield stage


def _node(plane: ControlPlane) -> NodeOptions:
    return NodeOptions(
        kubeconfig=plane.node_kubeconfig(NODE),
        admin_kubeconfig=plane.kubeconfig(),
        name=NODE,
        cards=CARDS,
        pauses=RestartPauses(first_seconds=0.3),
    )


def _shield(client: Client, namespace: str) -> None:
    """Make a disruption budget that lets nobody go, as its controller would keep it."""
    path = group("policy/v1", "namespaces", namespace, "poddisruptionbudgets")
    made = client.post(
        path,
        {
            "metadata": {"name": "nobody"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": SHIELD}},
        },
    )
    said = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 0}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    client.patch(f"{path}/nobody/status", {"status": said | counts}, PatchType.MERGE)
