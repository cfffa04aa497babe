"""
What the driver says, and whether its processes are ours to find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.once.look import first_sample
from gpufence.findings import look, ok, wrong

if TYPE_CHECKING:
    from agent.model.sample import CardSample, Sample
    from agent.nvml.settings import SamplerSettings
    from agent.ports import Cards, Processes
    from gpufence.findings import Finding

_NO_NVML = (
    "give the agent's pod the runtime class nvidia and NVIDIA_VISIBLE_DEVICES=all, "
    "or set GPUFENCE_NVML_LIBRARY; nvidia-smi on the node says whether the driver is well"
)


def check_cards(cards: Cards, settings: SamplerSettings, processes: Processes) -> list[Finding]:
    """
    Look at the cards once; `processes` knows who lives.
    """
    sample = first_sample(cards, settings)
    found = [_nvml(sample)]
    for item in sample.cards:
        if item.memory is not None or item.processes is not None:
            found += _card(item, processes)
    return found


def _nvml(sample: Sample) -> Finding:
    if sample.trouble:
        return wrong("NVML", sample.trouble.text, _NO_NVML)
    return ok("NVML", f"driver {sample.driver}, cards: {len(sample.cards)}")


def _card(item: CardSample, processes: Processes) -> list[Finding]:
    subject = f"card {item.card.index}"
    if item.trouble or item.processes is None:
        trouble = item.trouble.text or "its processes cannot be listed"
        return [wrong(subject, trouble, "nobody on it is evicted; see nvidia-smi on the node")]
    listed = item.processes.processes
    pids = [process.pid for process in listed]
    living = processes.occupants(pids)
    text = f"{item.card.model}, {len(pids)} process{'' if len(pids) == 1 else 'es'}"
    found = []
    if pids and not living:
        found.append(
            wrong(
                subject,
                f"{text}, none of which is alive under these PIDs",
                "set hostPID: true, and GPUFENCE_PROC to the host's /proc",
            )
        )
    elif any(process.used_bytes is None for process in listed):
        found.append(
            look(
                subject,
                f"{text}, of which the driver does not say how much they hold",
                "pods on it are shown, never evicted",
            )
        )
    elif item.mps:
        found.append(
            look(
                subject,
                f"{text}, shared by MPS: nobody can tell its clients' memory apart",
                "pods on it are reported, never evicted; MPS has limits of its own",
            )
        )
    else:
        found.append(ok(subject, text))
    return found
