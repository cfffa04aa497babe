"""Where schemes are played against the running agent: a real API server, simulated cards."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Final

from agent.model.policy import EvictionPolicy
from gpufence import names
from gpufence.quantity import GIB, MIB
from gpufence.settings import rows
from kube import Client, ConflictError, NotFoundError, core
from simulator.controlplane import Assets, ControlPlane
from simulator.node import NodeOptions, RestartPauses, SimulatedNode
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIMITED
from tests.adversary.stage import HELD_BY_IDLE_THIEF, INNOCENT, PROMISED_TO_THIEF
from tests.adversary.tricks import Kind, Scheme, Trick
from tests.support import objects
from tests.support.agent.node_site import Agent, NodeSite, pod, workload
from tests.support.builders import T4_BYTES

FASTER: Final = 15
NODE: Final = "adversary"
THIEF: Final = "adversary-thief"
CONTEXT: Final = 40 * MIB
POLICY: Final = EvictionPolicy(
    interval_seconds=0.4,
    hold_seconds=2.0,
    short_hold_seconds=1.6,
    grace_seconds=8.0,
    start_pause_seconds=1.5,
    termination_seconds=3.0,
    eviction_grace_seconds=2,
    refused_backoff_seconds=0.4,
    refused_backoff_limit_seconds=4.0,
    node_evictions_per_minute=90,
    namespace_evictions_per_minute=45,
    repeated_hold_seconds=(4.0, 20.0, 120.0),
)
LIST_SECONDS: Final = 1.0
FORKS: Final = 2
FREE: Final = "adversary-free"
FAT_BYTES: Final = 190_000
"""Of characters that are six bytes in JSON: more is refused by the API server."""
MOST_HELD: Final = T4_BYTES - GIB - sum(held for _, held in INNOCENT.values())
"""What a card has beside the innocent: a workload takes all that it asks for, or nothing."""


def settings_of(policy: EvictionPolicy) -> dict[str, str]:
    """Write a policy as the agent's environment takes it."""
    values = [getattr(policy, item.name) for item in fields(policy) if item.metadata]
    pairs = zip(rows(EvictionPolicy), values, strict=True)
    return {row.variable: row.kind.write(value) for row, value in pairs}


@dataclass(frozen=True)
class LiveStage:
    plane: ControlPlane
    site: NodeSite
    node: SimulatedNode
    agent: Agent
    client: Client

    def create(self, namespace: str, manifest: dict[str, Any]) -> str:
        manifest["spec"]["nodeName"] = NODE
        made = self.client.post(core("namespaces", namespace, "pods"), manifest)
        return str(made["metadata"]["uid"])

    def remove(self, namespace: str, name: str, grace: int = 1) -> None:
        with suppress(NotFoundError, ConflictError):
            self.client.delete(
                core("namespaces", namespace, "pods", name), {"gracePeriodSeconds": grace}
            )

    def uids(self, namespace: str) -> dict[str, str]:
        """Return the pods of a namespace that nobody has asked to go, by name."""
        listed = self.client.get(core("namespaces", namespace, "pods"))
        data = (item["metadata"] for item in listed["items"])
        return {item["name"]: item["uid"] for item in data if "deletionTimestamp" not in item}


@contextmanager
def staged(*, driver: bool = False) -> Iterator[LiveStage]:
    """
    Start a control plane, a node with two cards, the innocent and the agent; `driver` holds each
    container to its limit there.
    """
    with ExitStack() as undo:
        plane = undo.enter_context(ControlPlane.start(Assets.from_environment(os.environ)))
        options = NodeOptions(
            kubeconfig=plane.node_kubeconfig(NODE),
            admin_kubeconfig=plane.kubeconfig(),
            name=NODE,
            cards="2xT4",
            pauses=RestartPauses(first_seconds=0.1),
            driver=LIMITED if driver else CURRENT,
            toolkit=Toolkit.CURRENT if driver else Toolkit.NONE,
        )
        node = undo.enter_context(SimulatedNode(options))
        site = undo.enter_context(NodeSite(plane, node, names.SYSTEM_NAMESPACE))
        client = site.admin
        modes: dict[str, str | None] = {names.SYSTEM_NAMESPACE: None, THIEF: "evict", FREE: None}
        modes |= {f"of-{name}": _mode(limit) for name, (limit, _) in INNOCENT.items()}
        for name, mode in modes.items():
            client.post(core("namespaces"), objects.namespace(name, mode))
        site.install()
        settings = settings_of(POLICY) | {
            "GPUFENCE_LIST_SECONDS": f"{LIST_SECONDS}",
            "GPUFENCE_NVML_RESTART_SECONDS": "0.2",
            "GPUFENCE_EVENT_BURST": "1000",
        }
        agent = undo.enter_context(Agent(lambda: site.agent(**settings)))
        stage = LiveStage(plane, site, node, agent, client)
        for name, (limit, held) in INNOCENT.items():
            stage.create(f"of-{name}", pod_of(name, limit, f"hold {held - CONTEXT}"))
        yield stage


def _mode(limit: int | None) -> str | None:
    return None if limit is None else "evict"


def pod_of(name: str, limit: int | None, *args: str, **metadata: object) -> dict[str, Any]:
    limits = {} if limit is None else {names.GPUSHARE_MEMORY: str(limit // GIB)}
    held = {} if limit is None else {names.DRIVER_REQUEST: "0", names.DRIVER_LIMIT: limit // MIB}
    env = [{"name": name, "value": str(value)} for name, value in held.items()]
    script = (*args, "--context", str(CONTEXT), "--on-oom", "wait")
    container = workload(*script, resources={"limits": limits}, env=env)
    notes = {names.GPUSHARE_CARD_INDEX: "0"} | ({names.INJECTED: "nothing"} if limits else {})
    made = pod(name, container, annotations=notes, terminationGracePeriodSeconds=30)
    made["metadata"] |= metadata
    return made


def script_of(scheme: Scheme, who: int, since: int, until: int) -> str:
    """Write what a thief does between two seconds of the play, in the workload's language."""
    tricks = [trick for trick in scheme if trick.who == who]
    churn = [trick.period for trick in tricks if trick.kind is Kind.CHURN and trick.is_on(since)]
    wanted = [_wanted(tricks, second) for second in range(since, max(until, since + 1))]
    kinds = {trick.kind for trick in tricks if trick.is_on(since)}
    if churn:
        return f"hold {max(wanted)}; after {_short(min(churn))}ms exit 0"
    if Kind.FORK in kinds:
        return f"hold {max(wanted) // (FORKS + 1) - CONTEXT}; fork {FORKS}"
    if Kind.LEAVE in kinds:
        return f"hold {max(wanted)}; leave"
    steps = [(amount, len(list(group_))) for amount, group_ in groupby(wanted)]
    text, pause = [], ""
    for amount, seconds in steps:
        text.append(f"{pause}hold {amount}")
        pause = f"after {_short(seconds)}ms "
    return "; ".join(text)


def _wanted(tricks: list[Trick], second: int) -> int:
    amounts = [
        trick.mebibytes
        for trick in tricks
        if (trick.kind is Kind.HOLD and trick.is_on(second))
        or (trick.kind is Kind.SAWTOOTH and trick.is_up(second))
    ]
    amounts += [
        trick.mebibytes + second - trick.at
        for trick in tricks
        if trick.kind is Kind.GROW and trick.is_on(second)
    ]
    held = PROMISED_TO_THIEF + max(amounts) * MIB if amounts else HELD_BY_IDLE_THIEF
    return min(held, MOST_HELD) - CONTEXT


def _short(seconds: float) -> int:
    return round(seconds * 1000 / FASTER)
