"""
PURE. What is fenced and by what: checks of kill switch, agents, nodes, namespaces, their pods, and
cards that come by resource claims (DRA), and autoscalers of GPU owners.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpufence.errors import Finding, InvalidError, look, ok, shown, unknown, wrong
from gpufence.mode import MODES, Mode, highest_mode, read_mode, switch_of
from gpufence.names import (
    CARDS,
    MODE,
    POLICY_CONFIGMAP,
    POLICY_DEFAULT_MAX_MODE,
    POLICY_MAX_MODE,
)
from gpufence.shape import as_texts
from gpufence.text import duration
from kubectl_gpufence.cluster_view import is_stale, named
from kubectl_gpufence.endings import how_it_ended
from kubectl_gpufence.verbs.doctor.starting import starting
from kubectl_gpufence.view import counted, readable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.cluster_view import NodeAgent, SeenNode
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.verbs.doctor.installation import Installation, LabelledNamespace


_AGENTS = "agents"
_NODES = "nodes"
_SWITCH = "kill switch"
_LIFTED = (
    f"patch configmap {POLICY_CONFIGMAP} --type merge "
    f"""-p '{{"data":{{"{POLICY_MAX_MODE}":null}}}}' once that is over"""
)
_CLIMBED = "leave out component observe-first (Helm: --set observeFirst=false) once that is over"
_CLOSED = "; a network policy may close its port to the API server (docs/network.md)"
_NAMESPACES = "namespaces"
_PODS = "pods"
_ASK = "ask an administrator to run this"
_CLAIMS: Final = "claims"
_AUTOSCALERS: Final = "autoscalers"


def check_agents(installation: Installation) -> Iterator[Finding]:
    """Find whether one agent is on each GPU node, alive, up to date, and allowed to act."""
    yield _switch(installation)
    if installation.agents.hidden:
        yield unknown(_AGENTS, installation.agents.hidden, _ASK)
        return
    agents = installation.agents.value or {}
    if installation.nodes.hidden:
        yield unknown(_NODES, installation.nodes.hidden, _ASK)
    else:
        nodes = installation.nodes.value or {}
        with_gpu = {name: node for name, node in nodes.items() if node.gpu or node.cards}
        yield from starting(
            _coverage(installation.kubectl, with_gpu, agents), young=installation.young
        )
        young = bool(installation.young_nodes & with_gpu.keys())
        yield from starting(_cards(with_gpu), young=installation.young or young)
    yield from _health(installation.kubectl, agents, installation.young_nodes)


def check_namespaces(installation: Installation) -> Iterator[Finding]:
    """Find who is fenced, who meant to be, and which pods slipped through."""
    if installation.namespaces.hidden:
        yield unknown(_NAMESPACES, installation.namespaces.hidden, _ASK)
        return
    namespaces = installation.namespaces.value or []
    yield _modes(namespaces)
    for item in namespaces:
        if item.mode is not None and item.mode not in MODES:
            yield wrong(
                _NAMESPACES,
                f"{item.name} has {MODE}: {shown(item.mode)}, which counts as none at all",
                f"kubectl label namespace {item.name} {MODE}=observe --overwrite",
            )
    yield from _pods(installation, {item.name for item in namespaces if item.mode in MODES})


def _switch(installation: Installation) -> Finding:
    """Judge the ConfigMap by which an operator can hold all agents back."""
    switch = installation.switch
    if switch.hidden:
        return unknown(_SWITCH, switch.hidden, _ASK)
    if switch.value is None:
        return wrong(
            _SWITCH,
            f"there is no ConfigMap {POLICY_CONFIGMAP}: no agent evicts any pod",
            f"{installation.kubectl} create configmap {POLICY_CONFIGMAP} "
            f"--from-literal={POLICY_MAX_MODE}=evict",
        )
    data = as_texts(switch.value.get("data"), "data")
    key = switch_of(data)
    try:
        for each in (POLICY_MAX_MODE, POLICY_DEFAULT_MAX_MODE):
            read_mode(data.get(each, str(Mode.EVICT)), f"data[{each}]")
    except InvalidError as error:
        return wrong(_SWITCH, f"{error}: no agent evicts any pod", "write observe, cap or evict")
    mode = highest_mode(data)
    if mode is not Mode.EVICT:
        return look(
            _SWITCH,
            f"no agent evicts any pod (highest mode {mode}); caps are as namespaces ask",
            f"{installation.kubectl} {_LIFTED}" if key == POLICY_MAX_MODE else _CLIMBED,
        )
    return ok(_SWITCH, "namespaces decide (max-mode evict)")


def _coverage(
    kubectl: str, nodes: dict[str, SeenNode], agents: dict[str, NodeAgent]
) -> Iterator[Finding]:
    without = [name for name in nodes if name not in agents]
    if not nodes:
        yield look(
            _NODES,
            "no node offers a GPU resource that gpufence knows",
            "install the device plugin of your GPU sharing system",
        )
    elif without:
        yield wrong(
            _AGENTS,
            f"{counted(len(without), 'GPU node')} without an agent: {named(without)}",
            f"see `{kubectl} describe daemonset gpufence-agent`: its node "
            "selector and tolerations must fit",
        )
    else:
        yield ok(_AGENTS, f"{counted(len(nodes), 'GPU node')}, each with an agent")


def _cards(nodes: dict[str, SeenNode]) -> Iterator[Finding]:
    without = [name for name, node in nodes.items() if not node.cards and not node.cards_trouble]
    if without:
        yield wrong(
            _NODES,
            f"no {CARDS} on {named(without)}: limits there rest on labels and settings",
            "see the log of the agent there: it writes the annotation once it sees its cards",
        )
    elif nodes:
        yield ok(_NODES, f"every GPU node tells its cards ({CARDS})")
    for name, node in nodes.items():
        if node.cards_trouble:
            remedy = "remove the annotation: the node's agent writes it anew"
            yield wrong(_NODES, f"{name}: {node.cards_trouble}", remedy)


def _health(
    kubectl: str, agents: dict[str, NodeAgent], young: Collection[str]
) -> Iterator[Finding]:
    """Judge what each agent answered; agents that are well are only counted."""
    well = 0
    for node, agent in sorted(agents.items()):
        findings = starting(_of_agent(kubectl, node, agent), young=node in young)
        well += not findings
        yield from findings
    if well == 1:
        yield ok(_AGENTS, "1 agent measures and answers")
    elif well:
        yield ok(_AGENTS, f"{counted(well, 'agent')} measure and answer")


def _of_agent(kubectl: str, node: str, agent: NodeAgent) -> Iterator[Finding]:
    logs = f"see `{kubectl} logs {agent.pod}`"
    if agent.is_direct:
        logs = f"see what the agent at {agent.pod} logs, and whether that is its address"
    if not agent.ready:
        yield wrong(_AGENTS, f"{agent.pod} on {node} is not ready", logs)
    elif agent.snapshot is not None:
        yield from _of_snapshot(node, agent.snapshot, logs)
    elif agent.denied:
        yield unknown(_AGENTS, f"{agent.pod} on {node}: {agent.trouble}", _ASK)
    else:
        closed = "" if agent.is_direct else _CLOSED
        yield wrong(_AGENTS, f"{agent.pod} on {node}: {agent.trouble}", f"{logs}{closed}")


def _of_snapshot(node: str, snapshot: Snapshot, logs: str) -> Iterator[Finding]:
    if snapshot.trouble:
        partly = any(card.used_bytes is not None for card in snapshot.cards)
        measured = "is measured in part" if partly else "is not measured"
        yield wrong(_AGENTS, f"{node} {measured}: {snapshot.trouble}", logs)
    elif is_stale(snapshot):
        age = snapshot.stale_seconds
        old = "has measured nothing yet" if age is None else f"last measured {duration(age)} ago"
        yield wrong(_AGENTS, f"{node} {old}", logs)
    if not snapshot.fresh:
        text = f"the agent of {node} cannot reach the API server, or not read the kill switch"
        yield wrong(_AGENTS, f"{text}: no pod is evicted there", logs)
    if snapshot.brake:
        yield look(
            _AGENTS,
            f"evictions on {node} are held back: {snapshot.brake}",
            "look at `kubectl gpufence top` of that node before you change anything",
        )
    for card in snapshot.cards:
        if card.trouble:
            text = f"card {card.index} ({card.uuid}) of {node}: {card.trouble}"
            yield wrong(_AGENTS, text, "look at nvidia-smi and dmesg on the node")


def _modes(namespaces: list[LabelledNamespace]) -> Finding:
    modes = Counter(item.mode for item in namespaces if item.mode in MODES)
    if not modes:
        return look(
            _NAMESPACES,
            "no namespace is fenced",
            f"kubectl label namespace NAME {MODE}=observe is the first step",
        )
    parts = ", ".join(f"{modes[mode]} in mode {mode}" for mode in MODES if modes[mode])
    return ok(_NAMESPACES, f"{counted(modes.total(), 'namespace')} fenced: {parts}")


def _pods(installation: Installation, fenced: set[str]) -> Iterator[Finding]:
    if installation.pods.hidden:
        yield unknown(_PODS, installation.pods.hidden, _ASK)
        return
    inside = [pod for pod in installation.pods.value or [] if pod.namespace in fenced]
    staying = (pod for pod in inside if not pod.terminating)
    missed = [f"{pod.namespace}/{pod.name}" for pod in staying if not pod.injected]
    unseen = (
        f"the webhook never saw {counted(len(missed), 'pod')} of fenced namespaces: {named(missed)}"
    )
    if missed and installation.away:
        yield look(
            _PODS,
            f"{unseen}; {installation.away}",
            "see to that first; then delete them, so that their controllers make them anew",
        )
    elif missed:
        yield wrong(
            _PODS,
            unseen,
            "delete them, so that their controllers make them anew; were they made after the label "
            "was set, the webhook was away or is not called",
        )
    elif inside:
        yield ok(_PODS, f"the webhook has seen {counted(len(inside), 'GPU pod')} in them, all")
    damaged = [f"{pod.namespace}/{pod.name}" for pod in inside if pod.recorded.trouble]
    if damaged:
        yield look(
            _PODS,
            f"the plan of {counted(len(damaged), 'pod')} cannot be read: {named(damaged)}",
            "upgrade this plugin if the webhook is newer; else delete the pods",
        )
    yield from _loops(inside)


def _loops(pods: Iterable[SeenPod]) -> Iterator[Finding]:
    """Name the pods that fail again and again for want of GPU memory."""
    waiting = [pod for pod in pods if any(ending.waiting for ending in pod.endings)]
    words = {
        f"{pod.namespace}/{pod.name}": how_it_ended(None, pod.endings, pod.recorded.plan)
        for pod in waiting
    }
    for word in sorted({*words.values()} - {""}):
        loops = [name for name, why in words.items() if why == word]
        yield look(
            _PODS,
            f"{counted(len(loops), 'pod')} in a crash loop ({word}): {named(loops)}",
            "kubectl gpufence explain -n NAMESPACE POD says what would do",
        )


def check_claims(installation: Installation) -> Iterator[Finding]:
    """
    Find whether nodes that publish cards have agents, and which fenced pods have claims of which
    nothing is known. A cluster without such cards is not spoken of.
    """
    published = installation.published
    if published.hidden:
        yield unknown(_CLAIMS, published.hidden, _ASK)
        return
    nodes = sorted({item.node for item in published.value or [] if item.cards})
    if nodes:
        yield from _claim_nodes(installation, nodes)
        yield from _served(installation)
    yield from _claim_pods(installation)


def _claim_nodes(installation: Installation, nodes: list[str]) -> Iterator[Finding]:
    agents = installation.agents.value or {}
    without = [node for node in nodes if node not in agents]
    if without and not installation.agents.hidden:
        yield wrong(
            _CLAIMS,
            f"{counted(len(without), 'node')} with cards for claims without an agent: "
            f"{named(without)}",
            f"see `{installation.kubectl} describe daemonset gpufence-agent`; where no "
            "label brings it, label the node nvidia.com/gpu.present=true",
        )
        return
    shared = sum(item.shared for item in installation.published.value or [])
    sharing = f"{counted(shared, 'card')} shared by memory" if shared else "none of them shared"
    yield ok(_CLAIMS, f"{counted(len(nodes), 'node')} with cards for claims, {sharing}")


def _served(installation: Installation) -> Iterator[Finding]:
    """Name the resources whose pods may get a part of a card where they expect a whole one."""
    least = [item.least_bytes for item in installation.published.value or [] if item.least_bytes]
    classes = [item for item in installation.classes.value or [] if item.gpus]
    for item in classes:
        if item.resource and least:
            yield look(
                _CLAIMS,
                f"{item.resource} is served by claims of class {item.name}: a pod that asks for "
                f"one gets as little as {readable(min(least))} of a card, and is held to that",
                "let pods claim an amount, or raise the default of the driver's sharing policy",
            )


def _claim_pods(installation: Installation) -> Iterator[Finding]:
    """
    Name those that have a plan without a limit; whose claims are about other devices has no plan.
    """
    fenced = {item.name for item in installation.namespaces.value or [] if item.mode in MODES}
    planned = {
        f"{pod.namespace}/{pod.name}": plan
        for pod in installation.pods.value or []
        if pod.pod.claims and pod.namespace in fenced and (plan := pod.recorded.plan) is not None
    }
    without = [name for name, plan in planned.items() if plan.limit_bytes is None]
    if without:
        yield look(
            _CLAIMS,
            f"{counted(len(without), 'pod')} with claims and no configured value: {named(without)}",
            "kubectl gpufence explain POD says why; agents hold them to what their claims consumed",
        )
    elif planned:
        yield ok(_CLAIMS, f"{counted(len(planned), 'pod')} with claims, each with its limit")


def check_scaling(installation: Installation) -> Iterator[Finding]:
    """Find ScaledObjects that take away workers that work."""
    scalers = installation.scalers
    if scalers.hidden:
        yield unknown(_AUTOSCALERS, scalers.hidden, "ask an administrator to run this")
        return
    found = scalers.value or []
    for scaler in found:
        if not scaler.counts_work:
            yield look(
                _AUTOSCALERS,
                f"ScaledObject {scaler.namespace}/{scaler.name} of {scaler.kind}/{scaler.target} "
                "counts what waits and not what works: a pool that keeps up looks as if it were "
                "not needed, and a worker that is busy for longer than the cooldown is taken away",
                "add the trigger busy of deploy/examples/keda/scaled-object.yaml",
            )
    if found and all(scaler.counts_work for scaler in found):
        count = counted(len(found), "ScaledObject")
        yield ok(_AUTOSCALERS, f"{count} of GPU owners: what waits counts, and what works")
