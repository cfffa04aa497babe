"""
`gpufence-agent check`: whether this node can be enforced, with a remedy for each thing missing.
"""

from __future__ import annotations

import json
import os
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from agent.clock import boottime
from agent.cluster.cluster import REMEDY, find_identity
from agent.commands.driver_paths import driver_remedy
from agent.commands.snapshot import first_sample
from agent.concern import DRY_RUN, NO_SUCH_POD, Check
from agent.model.state import Identity
from agent.nvml.sampler import Sampler
from agent.nvml.session import Aside
from agent.procfs.lookup import Lookup
from agent.program import CONCERNS, SETTINGS, cluster_settings
from agent.settings import read_agent_settings
from gpufence import names
from gpufence.errors import Level, look, ok, wrong
from gpufence.mode import Mode, highest_mode
from gpufence.text import aligned, printable
from kube import (
    AccessError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    PatchType,
    connect,
    core,
    read_client_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent.cluster import ClusterSettings
    from agent.concern import Concern
    from agent.model.sample import CardSample, Sample
    from agent.ports import Processes
    from agent.settings import AgentSettings
    from gpufence.errors import Finding
    from kube import Client, ClientSettings

VERSION: Final = 1

_STATES: Final = {Level.LOOK: "warning", Level.WRONG: "missing"}
"""This command's words: what is wrong with a node is that something is missing."""


def check(environ: Mapping[str, str], stdout: TextIO, *, as_json: bool) -> int:
    """Print what was found; 1 where something is missing."""
    settings = read_agent_settings(environ, SETTINGS, needs_node=True)
    access = read_client_settings(environ, user_agent="gpufence-agent")
    of_kernel = check_pid_namespace(), check_clock(settings.proc), check_cgroups(settings.proc)
    kill = check_kill(wanted=settings.policy.last_resort_kill)
    of_cards = _of_cards(settings, driver_remedy(environ))
    findings = [*of_kernel, kill, *of_cards, *_of_cluster(settings, access)]
    stdout.write(json_of(findings) if as_json else text_of(findings))
    return int(not can_enforce(findings))


def _of_cards(settings: AgentSettings, remedy: str) -> list[Finding]:
    cards, aside = Sampler(settings.sampler), Aside(settings.sampler)
    try:
        sample = first_sample(cards, settings.sampler)
        more = [each.findings(getattr(settings, each.name), sample, aside) for each in CONCERNS]
    finally:
        cards.close()
        aside.rest()
    return [*check_cards(sample, Lookup(settings.proc), remedy), *chain.from_iterable(more)]


def _of_cluster(settings: AgentSettings, access: ClientSettings) -> Iterator[Finding]:
    try:
        client = connect(access)
    except AccessError as error:
        yield wrong("API server", "no way to a cluster", str(error))
        return
    with client:
        yield from check_api(client, cluster_settings(settings), CONCERNS)


def can_enforce(findings: Sequence[Finding]) -> bool:
    return all(item.level is not Level.WRONG for item in findings)


def text_of(findings: Sequence[Finding]) -> str:
    """Write a table, then the remedies, then the answer."""
    rows = [(item.subject, _state(item), printable(item.text)) for item in findings]
    table = aligned([("CHECK", "STATE", "FOUND"), *rows], gap="   ")
    lines = [f"{line}\n" for line in table]
    remedies = [item for item in findings if item.remedy]
    if remedies:
        lines.append("\n")
        lines += [f"{item.subject}: {item.remedy}\n" for item in remedies]
    answer = "can" if can_enforce(findings) else "cannot"
    lines.append(f"\nThis node {answer} be enforced.\n")
    return "".join(lines)


def json_of(findings: Sequence[Finding]) -> str:
    document = {
        "v": VERSION,
        "enforceable": can_enforce(findings),
        "checks": [
            {
                "subject": item.subject,
                "state": _state(item),
                "text": item.text,
                "remedy": item.remedy,
            }
            for item in findings
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _state(finding: Finding) -> str:
    return _STATES.get(finding.level, str(finding.level))


INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The kernel gives the first PID namespace this number on every machine."""

CAP_KILL: Final = 5
MOST_PIDS: Final = 20_000
_SHOWN = 120
_NO_FENCE = "pods on it are neither capped nor evicted"
_START_SLACK_SECONDS = 2.0


def check_pid_namespace(own: str = "/proc/self/ns/pid") -> Finding:
    subject = "PID namespace"
    try:
        namespace = os.readlink(own)  # noqa: PTH115 - the text of the link is the answer
    except OSError as error:
        return look(subject, f"{own} cannot be read: {error.strerror}", "mount /proc")
    if namespace == INITIAL_PID_NAMESPACE:
        return ok(subject, "the host's")
    return wrong(
        subject,
        f"{namespace} is not the host's: drivers name processes by PIDs that mean nothing here",
        "set hostPID: true in the agent's pod; in a node that is itself a container (kind, k3d) "
        "this cannot be had, and drivers from 535 on may hide processes there",
    )


def check_clock(proc: str) -> Finding:
    """
    Compare our own start with the clock: in a time namespace every process would seem too young.
    """
    subject = "clock"
    me = Lookup(proc).look(os.getpid())
    if me is None:
        return look(
            subject,
            f"{proc} does not show this process itself",
            "GPUFENCE_PROC must be the /proc of the host's PID namespace",
        )
    if me.started_by > boottime() + _START_SLACK_SECONDS:
        return wrong(
            subject,
            "processes seem to start in the future: this is a time namespace",
            "run the agent in the host's time namespace",
        )
    return ok(subject, "processes are dated as the kernel does")


def check_cgroups(proc: str) -> Finding:
    """Look at all processes: on a node at least some belong to pods, the agent's own among them."""
    subject = "processes and pods"
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdecimal()][:MOST_PIDS]  # noqa: PTH208 - names are all that is wanted
    except OSError as error:
        return wrong(
            subject, f"{proc} cannot be read: {error.strerror}", "mount it or set GPUFENCE_PROC"
        )
    occupants = Lookup(proc, most_remembered=MOST_PIDS).occupants(pids)
    owners = [item.owner for item in occupants.values() if item.owner is not None]
    pods = {owner.pod_uid for owner in owners if owner.pod_uid}
    containers = {owner.container_id for owner in owners if owner.container_id}
    if containers:
        of = f"{len(containers)} containers of {len(pods)} pods"
        return ok(subject, f"{len(pids)} processes, among them those of {of}")
    # The first process is there in every PID namespace; who sees itself and not that one is kept
    # from seeing others.
    hidden = os.getpid() in pids and 1 not in pids
    if hidden or (pids and not occupants):
        return wrong(
            subject,
            "no process but the agent's own is shown"
            if hidden
            else f"none of {len(pids)} processes can be read",
            "mount /proc without hidepid, or run the agent as root with CAP_SYS_PTRACE; "
            "where SELinux confines it, give its pod the type spc_t",
        )
    return wrong(
        subject,
        f"{len(pids)} processes, none of a container gpufence recognises; {_sample(proc)}",
        "run this on a node, in the agent's pod; if it is one, report the line above: its "
        "container runtime names cgroups in a way of its own",
    )


def check_kill(*, wanted: bool, status: str = "/proc/self/status") -> Finding:
    """Look for the capability, where the operator relies on it."""
    subject = "last-resort kill"
    if not wanted:
        return ok(subject, "not enabled, so no capability is needed")
    if _capabilities(status) >> CAP_KILL & 1:
        return ok(subject, "enabled, and the agent may signal processes of others")
    return wrong(
        subject,
        "enabled, but the agent may not signal processes of others",
        "add the capability KILL and run as root, as deploy/components/last-resort-kill does",
    )


def _capabilities(status: str) -> int:
    try:
        lines = Path(status).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    mask = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return int(mask, 16)


def _sample(proc: str) -> str:
    try:
        text = Path(proc, "self", "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = "nothing"
    return f"/proc/self/cgroup says {text.strip()[:_SHOWN]!r}"


def check_cards(sample: Sample, processes: Processes, remedy: str) -> list[Finding]:
    """Say what a look at the cards shows; `remedy` is for a driver that is not there."""
    readable = (item for item in sample.cards if item.memory is not None or item.processes)
    unfenced = (look("fence", str(item), _NO_FENCE) for item in sample.unfenced)
    return [_nvml(sample, remedy), *(_card(item, processes) for item in readable), *unfenced]


def _nvml(sample: Sample, remedy: str) -> Finding:
    if sample.trouble:
        return wrong("NVML", sample.trouble.text, remedy)
    return ok("NVML", f"driver {sample.driver}, cards: {len(sample.cards)}")


def _card(item: CardSample, processes: Processes) -> Finding:
    subject = f"card {item.card.index}"
    if item.trouble or item.processes is None:
        trouble = item.trouble.text or "its processes cannot be listed"
        return wrong(subject, trouble, "no pod on it is evicted; see nvidia-smi on the node")
    listed = item.processes.processes
    pids = [process.pid for process in listed]
    text = f"{item.card.model}, {len(pids)} process{'' if len(pids) == 1 else 'es'}"
    if pids and not processes.occupants(pids):
        return wrong(
            subject,
            f"{text}, none of which is alive under these PIDs",
            "set hostPID: true, and GPUFENCE_PROC to the host's /proc",
        )
    if any(process.used_bytes is None for process in listed):
        return look(
            subject,
            f"{text}, of which the driver does not say how much they hold",
            "pods on it are shown, never evicted",
        )
    if item.mps:
        return look(
            subject,
            f"{text}, shared by MPS: its clients' memory cannot be attributed",
            "clients of the node's server are reported, never evicted; MPS has limits of its own",
        )
    return ok(subject, text)


def check_api(
    client: Client, settings: ClusterSettings, concerns: Iterable[type[Concern]]
) -> Iterator[Finding]:
    """Yield what was found; where nobody can be reached, that is all."""
    try:
        version = client.get("/version", timeout_seconds=settings.request_seconds)
    except KubeError as error:
        yield wrong(
            "API server",
            str(error),
            "check the network, the service account's token and KUBECONFIG",
        )
        return
    yield ok("API server", f"{version.get('gitVersion')}")
    yield _kill_switch(client, settings)
    labels = partial(client.get, core("namespaces"), {"limit": 1})
    yield _may("namespaces", labels, "labels can be read")
    own = core("nodes", settings.node)
    nothing = {"metadata": dict[str, str]()}
    annotation = partial(client.patch, own, nothing, PatchType.MERGE, DRY_RUN)
    yield _may("Node annotation", annotation, "can be written")
    try:
        identity, acting = find_identity(client, settings)
    except KubeError as error:
        yield wrong("pods of this node", str(error), REMEDY)
        return
    yield _identity(identity)
    yield _node(acting, settings.node)
    yield from (_may(*each) for each in _rights(acting, settings))
    for concern in concerns:
        yield from (_may(*each) for each in concern.checks(client, acting, settings))


def _rights(acting: Client, settings: ClusterSettings) -> tuple[Check, ...]:
    node, namespace = settings.node, settings.system_namespace
    pod = core("namespaces", namespace, "pods", NO_SUCH_POD)
    by_node: dict[str, str | int] = {"fieldSelector": f"spec.nodeName={node}", "limit": 1}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": NO_SUCH_POD, "namespace": namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "generateName": "gpufence-check."},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": "GPUFenceCheck",
        "message": "never written",
        "type": "Normal",
    }
    events = core("namespaces", "default", "events")
    evict = partial(acting.post, f"{pod}/eviction", eviction, DRY_RUN)
    condition = partial(acting.patch, f"{pod}/status", {"status": {}}, PatchType.STRATEGIC, DRY_RUN)
    return (
        Check("pods of this node", partial(acting.get, core("pods"), by_node), "can be listed"),
        Check("evictions", evict, "allowed"),
        Check("deletions", partial(acting.delete, pod, None, DRY_RUN), "allowed"),
        Check("Events", partial(acting.post, events, event, DRY_RUN), "can be written"),
        Check("conditions of pods", condition, "can be written"),
    )


def _node(acting: Client, node: str) -> Finding:
    try:
        nodes = acting.get(core("nodes"), {"fieldSelector": f"metadata.name={node}"}).get("items")
    except KubeError as error:
        return wrong("Node", str(error), REMEDY)
    if nodes:
        return ok("Node", f"{node} is there")
    return wrong("Node", f"there is no Node {node}", "set GPUFENCE_NODE to the name kubectl shows")


def _kill_switch(client: Client, settings: ClusterSettings) -> Finding:
    subject = "kill switch"
    path = core("namespaces", settings.system_namespace, "configmaps", names.POLICY_CONFIGMAP)
    where = f"ConfigMap {settings.system_namespace}/{names.POLICY_CONFIGMAP}"
    try:
        data = client.get(path).get("data") or {}
    except NotFoundError:
        return wrong(subject, f"{where} is absent: no pod is evicted", "apply deploy/base/system")
    except KubeError as error:
        return wrong(subject, f"{error}: no pod is evicted", REMEDY)
    highest = highest_mode(data)
    if highest is Mode.EVICT:
        return ok(subject, "evictions are allowed")
    return look(
        subject,
        f"{where} allows {highest} at most: no pod is evicted",
        f"set its key {names.POLICY_MAX_MODE} to {Mode.EVICT} when the time has come",
    )


def _identity(identity: Identity) -> Finding:
    if identity is Identity.IMPERSONATING:
        return ok("identity", "acts as its own node, bound to it by the API server")
    return look(
        "identity",
        "acts as its own account, whose rights reach the pods of every node",
        "Kubernetes 1.36 and later can bind it to its node: see deploy/base/agent/rbac.yaml",
    )


def _may(subject: str, ask: Callable[[], object], text: str) -> Finding:
    try:
        ask()
    except NotFoundError:
        return ok(subject, text)
    except ForbiddenError as error:
        return wrong(subject, str(error), REMEDY)
    except KubeError as error:
        return look(subject, str(error), "run the check again; the API server had trouble")
    return ok(subject, text)
