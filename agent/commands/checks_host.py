"""
What the kernel and the driver let the agent see: processes by their host PIDs, whose they are, and
what they hold.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.clock import boottime
from agent.commands.snapshot import first_sample
from agent.procfs.lookup import Lookup
from gpufence.findings import look, ok, wrong

if TYPE_CHECKING:
    from agent.model.sample import CardSample, Sample
    from agent.nvml.settings import SamplerSettings
    from agent.ports import Cards, Processes
    from gpufence.findings import Finding

INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The kernel gives the first PID namespace this number on every machine."""

CAP_KILL: Final = 5
MOST_PIDS: Final = 20_000
_SHOWN = 120
_NO_NVML = (
    "give the agent's pod the runtime class nvidia and NVIDIA_VISIBLE_DEVICES=all, "
    "or set GPUFENCE_NVML_LIBRARY; nvidia-smi on the node says whether the driver is well"
)
_NO_FENCE = "pods on it are neither told a share nor evicted"
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


def check_cards(cards: Cards, settings: SamplerSettings, processes: Processes) -> list[Finding]:
    """Look at the cards once; `processes` knows who lives."""
    sample = first_sample(cards, settings)
    readable = (item for item in sample.cards if item.memory is not None or item.processes)
    unfenced = (look("fence", str(item), _NO_FENCE) for item in sample.unfenced)
    return [_nvml(sample), *(_card(item, processes) for item in readable), *unfenced]


def _nvml(sample: Sample) -> Finding:
    if sample.trouble:
        return wrong("NVML", sample.trouble.text, _NO_NVML)
    return ok("NVML", f"driver {sample.driver}, cards: {len(sample.cards)}")


def _card(item: CardSample, processes: Processes) -> Finding:
    subject = f"card {item.card.index}"
    if item.trouble or item.processes is None:
        trouble = item.trouble.text or "its processes cannot be listed"
        return wrong(subject, trouble, "nobody on it is evicted; see nvidia-smi on the node")
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
            f"{text}, shared by MPS: nobody can tell its clients' memory apart",
            "clients of the node's server are reported, never evicted; MPS has limits of its own",
        )
    return ok(subject, text)
