"""
PURE. The agents: one on each GPU node, alive, up to date, and allowed to act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.errors import InvalidError
from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.mode import Mode, read_mode
from gpufence.names import CARDS, POLICY_CONFIGMAP, POLICY_MAX_MODE, SYSTEM_NAMESPACE
from gpufence.shape import as_texts
from kubectl_gpufence.scene import by_node, is_stale, named
from kubectl_gpufence.words import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.doctor.facts import Facts
    from kubectl_gpufence.scene import Agent, SeenNode

_AGENTS = "agents"
_NODES = "nodes"
_SWITCH = "kill switch"
_ASK = "ask an administrator to run this"


def check_agents(facts: Facts) -> Iterator[Finding]:
    yield _switch(facts)
    if facts.agents.hidden:
        yield unknown(_AGENTS, facts.agents.hidden, _ASK)
        return
    agents = by_node(facts.agents.value or ())
    if facts.nodes.hidden:
        yield unknown(_NODES, facts.nodes.hidden, _ASK)
    else:
        nodes = {name: node for name, node in (facts.nodes.value or {}).items() if _has_gpu(node)}
        yield from _coverage(nodes, agents)
        yield from _cards(nodes)
    yield from _health(agents)


def _has_gpu(node: SeenNode) -> bool:
    return node.gpu is not None or node.cards is not None


def _coverage(nodes: dict[str, SeenNode], agents: dict[str, Agent]) -> Iterator[Finding]:
    if not nodes:
        yield look(
            _NODES,
            "no node offers a GPU resource that gpufence knows",
            "install the device plugin of your GPU sharing system",
        )
        return
    without = [name for name in nodes if name not in agents]
    if without:
        yield wrong(
            _AGENTS,
            f"{counted(len(without), 'GPU node')} without an agent: {named(without)}",
            f"see `kubectl -n {SYSTEM_NAMESPACE} describe daemonset gpufence-agent`: its node "
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


def _health(agents: dict[str, Agent]) -> Iterator[Finding]:
    """
    Judge what each agent answered; agents that are well are only counted.
    """
    well = 0
    for node, agent in sorted(agents.items()):
        found = list(_of_agent(node, agent))
        well += not found
        yield from found
    if well:
        yield ok(
            _AGENTS,
            f"{counted(well, 'agent')} measure and answer"
            if well > 1
            else "1 agent measures and answers",
        )


def _of_agent(node: str, agent: Agent) -> Iterator[Finding]:
    logs = f"see `kubectl -n {SYSTEM_NAMESPACE} logs {agent.pod}`"
    if not agent.ready:
        yield wrong(_AGENTS, f"{agent.pod} on {node} is not ready", logs)
        return
    said = agent.snapshot
    if said is None:
        denied = "you may not" in agent.trouble
        make = unknown if denied else wrong
        yield make(_AGENTS, f"{agent.pod} on {node}: {agent.trouble}", _ASK if denied else logs)
        return
    yield from _of_snapshot(node, said, logs)


def _of_snapshot(node: str, said: Snapshot, logs: str) -> Iterator[Finding]:
    if said.trouble:
        yield wrong(_AGENTS, f"{node} is not measured: {said.trouble}", logs)
    elif is_stale(said):
        age = said.stale_seconds
        old = "has measured nothing yet" if age is None else f"last measured {duration(age)} ago"
        yield wrong(_AGENTS, f"{node} {old}", logs)
    if not said.fresh:
        text = f"the agent of {node} cannot reach the API server, or not read the kill switch"
        yield wrong(_AGENTS, f"{text}: nobody is evicted there", logs)
    if said.brake:
        yield look(
            _AGENTS,
            f"evictions on {node} are held back: {said.brake}",
            "look at `kubectl gpufence top` of that node before you change anything",
        )
    for card in said.cards:
        if card.trouble:
            text = f"card {card.index} ({card.uuid}) of {node}: {card.trouble}"
            yield wrong(_AGENTS, text, "look at nvidia-smi and dmesg on the node")


def _switch(facts: Facts) -> Finding:
    """
    Judge the ConfigMap by which an operator can hold all agents back.
    """
    asked = facts.switch
    if asked.hidden:
        return unknown(_SWITCH, asked.hidden, _ASK)
    if asked.value is None:
        return wrong(
            _SWITCH,
            f"there is no ConfigMap {POLICY_CONFIGMAP}: no agent evicts anybody",
            f"kubectl -n {SYSTEM_NAMESPACE} create configmap {POLICY_CONFIGMAP} "
            f"--from-literal={POLICY_MAX_MODE}=evict",
        )
    field = f"data[{POLICY_MAX_MODE}]"
    text = as_texts(asked.value.get("data"), "data").get(POLICY_MAX_MODE, str(Mode.EVICT))
    try:
        mode = read_mode(text, field)
    except InvalidError as error:
        return wrong(_SWITCH, f"{error}: no agent evicts anybody", "write observe, cap or evict")
    if mode is not Mode.EVICT:
        return look(
            _SWITCH,
            f"agents go no further than mode {mode}, whatever namespaces ask for",
            f"set {POLICY_MAX_MODE}: evict in ConfigMap {POLICY_CONFIGMAP} once that is over",
        )
    return ok(_SWITCH, "namespaces decide (max-mode evict)")
