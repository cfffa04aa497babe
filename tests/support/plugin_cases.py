"""
What the plugin shows in typical and in odd states, each a file beside this one.

After a change on purpose, write them anew with `GPUFENCE_GOLDEN=write`, and read the difference.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpufence import names
from gpufence.memory_condition import HeldOnCard, MemoryReason
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import ActivityRow, LeftRow, NobodyRow, PodActivityRow, ProcessRow
from kubectl_gpufence.card_lines import CARD_FIELDS, NODE_FIELDS, card_lines, node_lines
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent
from kubectl_gpufence.pod_lines import POD_FIELDS, pod_lines
from kubectl_gpufence.pods import SeenEvent, SeenPod, see_pod
from kubectl_gpufence.verbs.doctor import examine, findings_lines
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.verbs.idle.lines import (
    SeenOwners,
    idle_lines,
    idle_listing,
    plan_lines,
    waiting_note,
)
from kubectl_gpufence.verbs.inspect import inspection
from kubectl_gpufence.verbs.why.story import FoundRecord, story
from kubectl_gpufence.view import Display, columns_of, table
from tests.support import verb_cases
from tests.support.builders import container, gpushare, sidecar
from tests.support.gpushare_cases import GPUSHARE_CASES
from tests.support.plugin import (
    CARD,
    LIMIT,
    NODE,
    agent,
    card_row,
    cluster,
    pod_row,
    raw_pod,
    raw_saying,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.rewriting import POLICY
from tests.support.verb_cases import DOCTORED, NEED_CASES, alone, capped_record, led
from webhook.policy import DriverLimits

FOLDER = Path(__file__).parents[1] / "golden" / "plugin"
TERMINAL: Display = Display(width=100)
LONG = "a-deployment-of-a-team-with-much-to-say-7d9f8b6c4d-x2x4k"


def holding(used: int = 3500 * MIB) -> NodeAgent:
    """Build an agent whose one pod is over its limit."""
    busy = ActivityRow("busy", 0.0, "Busy")
    over = use_row(used, outcome="holding", over_seconds=12.0, due_seconds=18.0, activity=busy)
    over = over._replace(fence="framework")
    row = pod_row(over, activity=PodActivityRow(*busy, busy_share=0.417))
    return agent(snapshot(row))


def typical() -> ClusterAnswers:
    """Build a node with a pod over its limit, one within and one that was just made."""
    rows = (
        pod_row(
            use_row(
                3500 * MIB,
                outcome="holding",
                over_seconds=12.0,
                due_seconds=18.0,
                activity=ActivityRow("busy", 0.0, "Busy"),
            )
        ),
        pod_row(
            use_row(GIB, activity=ActivityRow("idle", 763.0, "NoKernels")),
            uid="u2",
            name="notebook",
            owner="",
        ),
        pod_row(use_row(2900 * MIB), uid="u3", name=LONG),
    )
    return cluster(
        seen_pod(),
        seen_pod(name="notebook", uid="u2"),
        seen_pod(name=LONG, uid="u3"),
        seen_pod(name="pending", uid="u4", bound=False),
        agents=(agent(snapshot(*rows)),),
    )


def odd() -> ClusterAnswers:
    """Build every pod that is out of the ordinary."""
    rows = (
        pod_row(use_row(None, outcome="unknown", processes=())),
        pod_row(use_row(GIB, limit_bytes=None, outcome="undeclared"), uid="nobody", name="thief"),
        pod_row(
            use_row(GIB, card="GPU-gone", fence="driver"), uid="moved", name="moved", mode="observe"
        ),
        pod_row(use_row(GIB), uid="early", name="early", injected=False),
        pod_row(
            use_row(3 * GIB + 1, outcome="holding", over_seconds=130.0, due_seconds=0.0),
            uid="observed",
            name="observed",
            mode="observe",
        ),
        pod_row(
            use_row(GIB, outcome="brand new", fence="new\x1b[31m"),
            uid="later",
            name="later\x1b[31m",
        ),
        pod_row(uid="idle", name="idle")._replace(
            uses=(), activity=PodActivityRow("idle", 4000.0, "NoKernels", busy_share=0.0)
        ),
    )
    broken = raw_pod(name="damaged", uid="damaged")
    broken["metadata"]["annotations"][names.PLAN] = '{"v":2}'
    opted = {names.INJECT: "disabled"}
    two = (gpushare("main", 2), sidecar("side", **{names.GPUSHARE_MEMORY: "1"}))
    return cluster(
        seen_pod(),
        seen_pod(name="early", uid="early", mode=None),
        seen_pod(name="observed", uid="observed", mode=Mode.OBSERVE),
        seen_pod(name="opted-out", uid="opted", annotations=opted),
        seen_pod(
            container(**{names.HAMI_MEMORY: "2000", names.NVIDIA_GPU: "1"}), name="hami", uid="hami"
        ),
        seen_pod(*two, name="two", uid="two"),
        see_pod(broken, seen_node().gpu),
        seen_pod(name="idle", uid="idle"),
        agents=(agent(snapshot(*rows)),),
    )


def silent() -> ClusterAnswers:
    """Build a cluster without any snapshot."""
    lost = replace(seen_pod(name="elsewhere", uid="u2"), node="gpu-2")
    return cluster(
        seen_pod(),
        lost,
        agents=(agent(None, "it does not answer in time"),),
        nodes={"gpu-1": seen_node(), "gpu-2": seen_node("gpu-2", 2), "cpu": seen_node("cpu")},
    )


def stale() -> ClusterAnswers:
    """Build two nodes, one measured long ago and one never."""
    old = snapshot(stale_seconds=200.0, trouble="the driver was lost")
    never = snapshot(node="gpu-2", stale_seconds=None)
    second = replace(seen_pod(), node="gpu-2")
    return cluster(seen_pod(), second, agents=(agent(old), agent(never, node="gpu-2")))


LEFT = card_row(left=(LeftRow("team-a/trainer-0", 1195, 3368 * MIB),))


def odd_cards() -> ClusterAnswers:
    """Build cards that are lost, shared through MPS, or promised twice."""
    rows = (
        card_row(used_bytes=None, free_bytes=None, trouble="fell off the bus"),
        card_row(1, mps=True, reserved_bytes=None, listed_seconds_ago=None),
        card_row(2, committed_bytes=20 * GIB, unattributed_bytes=None, model=""),
    )
    fences = ("driver", "agent", "newer", "agent")
    uses = (use_row(GIB, card="GPU-1", fence=fence) for fence in fences)
    cut_off = snapshot(pod_row(*uses), cards=rows, fresh=False)
    braked = snapshot(node="gpu-2", brake="the agent has just started")
    lost = snapshot(node="gpu-3", trouble="no driver", cards=())
    return cluster(
        agents=(
            agent(cut_off),
            agent(braked, node="gpu-2"),
            agent(lost, node="gpu-3"),
            agent(None, "gone", node="gpu-4"),
        ),
        nodes={"gpu-5": seen_node("gpu-5")},
    )


def explained(
    pod: SeenPod,
    said: NodeAgent | None = None,
    mode: str | None = "evict",
    *,
    sums: bool = False,
) -> list[str]:
    return explanation(PodRecord(pod, mode, said or agent(snapshot())), TERMINAL, sums=sums)


def saying(reason: MemoryReason | str, *cards: HeldOnCard, name: str = "trainer-0") -> SeenPod:
    """Build a pod that says this of itself, by its agent."""
    return see_pod(raw_saying(reason, *cards, name=name, uid=name), seen_node().gpu)


OVER_ITS_LIMIT = saying(MemoryReason.OVER, HeldOnCard(0, 3500 * MIB, LIMIT))


def top_by_conditions() -> list[str]:
    """Show the pods of one who may not ask agents."""
    pods = (
        OVER_ITS_LIMIT,
        saying(
            MemoryReason.WITHIN, HeldOnCard(0, GIB, LIMIT), HeldOnCard(2, 0, LIMIT), name="within"
        ),
        saying(MemoryReason.WITHIN, HeldOnCard(None, 0, LIMIT), name="holds-nothing"),
        saying(MemoryReason.UNKNOWN, HeldOnCard(0, None, LIMIT), name="unknown"),
        saying("Brand\x1bNew", HeldOnCard(0, GIB, LIMIT), name="newer"),
        saying(MemoryReason.UNKNOWN, name="no-limit"),
        replace(seen_pod(), name="silent", uid="silent"),
    )
    return top(cluster(*pods, may_ask=False))


def explained_by_condition(pod: SeenPod) -> list[str]:
    note = "you may not list pods in gpufence-system, where the agents are: none is asked"
    return explanation(PodRecord(pod, None, None, note, hidden=True), TERMINAL)


def unplaced(pod: SeenPod) -> list[str]:
    return explanation(PodRecord(pod, "evict"), TERMINAL, sums=True)


def top(found: ClusterAnswers, *, wide: bool = False, look: Display | None = None) -> list[str]:
    return table(columns_of(POD_FIELDS, wide=wide), pod_lines(found, ""), look or TERMINAL)


def cards(found: ClusterAnswers, *, wide: bool = False) -> list[str]:
    look = Display() if wide else TERMINAL
    return table(columns_of(CARD_FIELDS, wide=wide), card_lines(found), look)


def nodes(found: ClusterAnswers, *, wide: bool = False) -> list[str]:
    look = Display() if wide else TERMINAL
    return table(columns_of(NODE_FIELDS, wide=wide), node_lines(found), look)


def held_in_vain(
    found: SeenOwners, *, wide: bool = False, look: Display | None = None
) -> list[str]:
    lines = idle_lines(found, "")
    listing = idle_listing(lines, "", "", ())
    return [*listing.table(look or TERMINAL, wide=wide), "", waiting_note(lines)]


def doctored(name: str) -> list[str]:
    return list(findings_lines(examine(getattr(verb_cases, name)()), TERMINAL))


def _plan(change: Callable[[dict[str, object]], None]) -> SeenPod:
    """Build a pod whose plan somebody has changed."""
    raw = raw_pod()
    said = json.loads(raw["metadata"]["annotations"][names.PLAN])
    change(said)
    raw["metadata"]["annotations"][names.PLAN] = json.dumps(said)
    return see_pod(raw, seen_node().gpu)


def _with_env(*entries: Mapping[str, object]) -> dict[str, object]:
    return gpushare("trainer") | {"env": list(entries)}


def _hostile() -> list[str]:
    event = SeenEvent("2026-01-02T03:04:05Z", names.LIMIT_EXCEEDED, 3, "held \x1b[2J too much")
    odd = {names.MEMORY: "1Gi", names.FRAMEWORK: "\x1b]0;title\x07\u202e"}
    pod = seen_pod(mode=Mode.CAP, annotations=odd)
    return explanation(PodRecord(pod, None, None, "you may not", (event,)), TERMINAL)


def _starved() -> SeenPod:
    few = {names.PROCESSES_PER_CARD: "4", names.HEADROOM: "auto"}
    return seen_pod(gpushare("trainer", 1), mode=Mode.CAP, annotations=few)


def _lowered() -> SeenPod:
    fraction = {"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": "0.5"}
    kept = {"name": "CUPY_GPU_MEMORY_LIMIT", "value": "1000000"}
    left = {"name": "JULIA_CUDA_HARD_MEMORY_LIMIT", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
    torch = {"name": "PYTORCH_ALLOC_CONF", "value": "expandable_segments:True"}
    return seen_pod(_with_env(fraction, kept, left, torch))


def _crowd() -> list[str]:
    own = tuple(ProcessRow(pid, 1200 * MIB, container="trainer") for pid in (41, 42))
    use = use_row(2400 * MIB, processes=own)
    other = use_row(GIB, card="GPU-1", limit_bytes=2 * GIB, processes=())
    row = pod_row(use, other, mode="cap", undeclared="nobody knows")
    said = snapshot(row, brake="it is early", fresh=False, stale_seconds=70.0)
    return explained(seen_pod(), agent(said))


def _doing(activity: PodActivityRow, *, holds: bool = True) -> list[str]:
    """Explain a pod that does this."""
    row = pod_row(activity=activity)
    return explained(seen_pod(), agent(snapshot(row if holds else row._replace(uses=()))))


def _inspect_odd() -> list[str]:
    rows = (
        pod_row(use_row(None, card="GPU-gone", limit_bytes=None, allowance_bytes=None), mode=""),
        pod_row(name="leaving", uid="u2", terminating=True)._replace(uses=()),
        pod_row(name="idle", uid="u3")._replace(uses=()),
    )
    nobody = (NobodyRow(CARD, ProcessRow(9, LIMIT)), NobodyRow(CARD, ProcessRow(8, None)))
    said = snapshot(*rows, nobody=nobody, stale_seconds=None, fresh=False, highest="", driver="")
    troubled = said._replace(brake="just started", trouble="no driver", cards=())
    return inspection(agent(troubled), troubled, TERMINAL)


CASES: dict[str, Callable[[], list[str]]] = {
    **NEED_CASES,
    **GPUSHARE_CASES,
    "top-typical": lambda: top(typical()),
    "top-narrow": lambda: top(typical(), look=Display(width=80, unicode=False)),
    "top-piped": lambda: top(typical(), look=Display()),
    "top-coloured": lambda: top(typical(), look=Display(width=100, colour=True)),
    "top-wide": lambda: top(odd(), wide=True, look=Display()),
    "top-odd": lambda: top(odd()),
    "top-silent": lambda: top(silent()),
    "top-stale": lambda: top(stale()),
    "top-by-conditions": top_by_conditions,
    "cards-typical": lambda: cards(typical()),
    "cards-odd": lambda: cards(odd_cards(), wide=True),
    "cards-left": lambda: cards(cluster(agents=(agent(snapshot(cards=(LEFT,))),))),
    "cards-silent": lambda: cards(silent()),
    "nodes-typical": lambda: nodes(typical()),
    "nodes-odd": lambda: nodes(odd_cards(), wide=True),
    "nodes-stale": lambda: nodes(stale()),
    "inspect-typical": lambda: inspection(holding(), holding().snapshot or snapshot(), TERMINAL),
    "inspect-odd": _inspect_odd,
    "explain-typical": lambda: explained(seen_pod(), holding()),
    "explain-within": lambda: explained(seen_pod()),
    "explain-conservative": lambda: unplaced(seen_pod(bound=False)),
    "explain-observe": lambda: explained(seen_pod(mode=Mode.OBSERVE), mode="observe"),
    "explain-lowered": lambda: explained(_lowered(), sums=True),
    "explain-starved": lambda: explained(_starved(), mode="cap", sums=True),
    "explain-auto": lambda: explained(
        seen_pod(gpushare("trainer", 10), annotations={names.HEADROOM: "auto"}), sums=True
    ),
    "explain-server": lambda: explained(
        seen_pod(
            gpushare("trainer", 8) | {"command": ["vllm", "serve"], "args": ["m"]},
            annotations={names.ARGS: "enabled"},
        ),
        sums=True,
    ),
    "explain-driver": lambda: explained(
        seen_pod(policy=replace(POLICY, driver_limits=DriverLimits.ON)), mode="cap", sums=True
    ),
    "explain-opted-out": lambda: explained(seen_pod(annotations={names.INJECT: "disabled"})),
    "explain-library": lambda: explained(
        seen_pod(container(**{names.HAMI_MEMORY: "2000", names.NVIDIA_GPU: "1"}))
    ),
    "explain-undeclared": lambda: explained(
        seen_pod(container(**{names.NVIDIA_GPU: "1"})),
        agent(
            snapshot(
                pod_row(
                    use_row(GIB, limit_bytes=None, outcome="undeclared"),
                    undeclared="nvidia.com/gpu says no amount",
                )
            )
        ),
    ),
    "explain-missed": lambda: explained(seen_pod(mode=None)),
    "explain-unfenced": lambda: explained(seen_pod(mode=None), mode=""),
    "explain-newer": lambda: explained(_plan(lambda said: said.update(v=2))),
    "explain-damaged": lambda: explained(_plan(lambda said: said.update(mode="shout"))),
    "explain-namespace": lambda: explained(
        seen_pod(gpushare("trainer", 5), namespace={names.MEMORY: "4Gi", names.MAX_MEMORY: "6GB5"})
    ),
    "explain-crowd": _crowd,
    "explain-idle": lambda: _doing(PodActivityRow("idle", 763.0, "NoKernels", busy_share=0.0)),
    "explain-untouched": lambda: _doing(
        PodActivityRow("idle", 4000.0, "NoKernels", busy_share=0.0), holds=False
    ),
    "explain-unmeasured": lambda: _doing(
        PodActivityRow("unknown", None, "NotMeasurable", "MPS is on the card")
    ),
    "explain-hostile": _hostile,
    "explain-capped": lambda: explanation(capped_record(), TERMINAL),
    "explain-silent": lambda: explained(seen_pod(), agent(None, "it does not answer in time")),
    "explain-by-condition": lambda: explained_by_condition(OVER_ITS_LIMIT),
    "explain-unplaced": lambda: unplaced(seen_pod(bound=False, mode=None)),
    "idle-typical": lambda: held_in_vain(led()),
    "idle-alone": lambda: held_in_vain(alone()),
    "idle-wide": lambda: held_in_vain(led(), wide=True, look=Display()),
    "release-plan": lambda: plan_lines(
        idle_listing(idle_lines(led(), ""), "team-a", "", ()), TERMINAL
    ),
    **{f"doctor-{name}": partial(doctored, name) for name in DOCTORED},
    "why-evicted": lambda: list(story(FoundRecord(NODE, verb_cases.ENDED), TERMINAL)),
}
