"""Tenants: limit, told, held, idle, and what the agents make of it."""

from tools.dashboards.cards import NODE
from tools.dashboards.panels import (
    BAD,
    DOUBTFUL,
    Dashboard,
    Kind,
    Panel,
    Query,
    Section,
    Variable,
    figure,
    many,
    rate,
    since,
)

NAMESPACE = Variable("namespace", "gpufence_pod_memory_used_bytes")
_CHOSEN = f"{NAMESPACE.selector}, {NODE.selector}"
_POD = "namespace, pod, node, card"
_IDLE_SECONDS = 600


def _figure(metric: str) -> str:
    return f"gpufence_pod_{metric}{{{_CHOSEN}}}"


def _of_pod(metric: str) -> str:
    return many(f"gpufence_pod_{metric}", _CHOSEN, _POD)


def _sum(metric: str) -> str:
    return f"sum({_figure(metric)})"


_USED, _LIMIT, _TOLD = "memory_used_bytes", "memory_limit_bytes", "memory_allowance_bytes"
_IDLE_FOR = f"(time() - {_figure('gpu_last_busy_timestamp_seconds')})"
_IS_IDLE = f"({_IDLE_FOR} > bool {_IDLE_SECONDS})"
_NOW = Section(
    "Now",
    (
        figure(
            "Pods on cards",
            "Pods that hold memory of a card, once for each card.",
            f"count({_figure(_USED)})",
        ),
        figure("Held", "What their processes hold.", _sum(_USED), "bytes"),
        figure("Limits", "What they may hold, as far as they have a limit.", _sum(_LIMIT), "bytes"),
        figure(
            "Told",
            "What their frameworks were told they may hold, as far as they were told anything.",
            _sum(_TOLD),
            "bytes",
        ),
        figure(
            "Over their limits",
            "Pods that hold more than they may. Those in mode evict go when their time is up.",
            f"sum(gpufence_violating_pods{{{_CHOSEN}}}) or 0 * count({_figure(_USED)})",
            "short",
            (1, DOUBTFUL),
        ),
        figure(
            "Held by idle pods",
            "Memory of pods that have done nothing on their card for ten minutes.",
            f"sum({_figure(_USED)} * {_IS_IDLE})",
            "bytes",
        ),
    ),
)
_TABLE = Panel(
    "Pods",
    "Each pod on each card. A pod without a card was given a GPU and holds no memory of any.",
    (
        Query(_of_pod(_USED), "Held", "bytes"),
        Query(_of_pod(_LIMIT), "Limit", "bytes"),
        Query(_of_pod(_TOLD), "Told", "bytes"),
        Query(f"{_of_pod(_USED)} / {_of_pod(_LIMIT)}", "Of its limit", "percentunit"),
        Query(since("gpufence_pod_gpu_last_busy", _CHOSEN, _POD), "Idle for", "s"),
        Query(_of_pod("gpu_processes"), "Processes", "short"),
    ),
    Kind.TABLE,
    width=24,
    rows=tuple(_POD.split(", ")),
)
_MEMORY = Section(
    "Memory",
    (
        Panel(
            "Limit, told, held",
            "Of all pods that are chosen. Held above told is memory outside of what frameworks "
            "count; held above the limits is somebody else's.",
            (
                Query(_sum(_LIMIT), "limit"),
                Query(_sum(_TOLD), "told"),
                Query(_sum(_USED), "held"),
            ),
            unit="bytes",
        ),
        Panel(
            "Held by namespace",
            "What the pods of each namespace hold.",
            (Query(f"sum by (namespace) ({_figure(_USED)})", "{{namespace}}"),),
            Kind.STACK,
            "bytes",
        ),
        Panel(
            "Closest to their limits",
            "The fifteen pods that hold most of what they may.",
            (
                Query(
                    f"topk(15, {_of_pod(_USED)} / {_of_pod(_LIMIT)})",
                    "{{namespace}}/{{pod}} on {{node}}",
                ),
            ),
            unit="percentunit",
            steps=((1.0, BAD),),
        ),
    ),
)
_USE = Section(
    "Use",
    (
        Panel(
            "Cards' worth of work",
            "Time at work on cards, in each second: 1 is one card that is busy all the time.",
            (
                Query(
                    rate("gpufence_pod_gpu_busy_seconds_total", _CHOSEN, "namespace"),
                    "{{namespace}}",
                ),
            ),
            Kind.STACK,
        ),
        Panel(
            "Idle pods",
            "Pods that have done nothing on a card for ten minutes. A pod of unknown state is "
            "not counted.",
            (Query(f"sum by (namespace) {_IS_IDLE}", "{{namespace}}"),),
            Kind.STACK,
        ),
        Panel(
            "Memory held by idle pods",
            "What others could have.",
            (
                Query(
                    f"sum by (namespace) ({_figure(_USED)} * {_IS_IDLE})",
                    "{{namespace}}",
                ),
            ),
            Kind.STACK,
            "bytes",
        ),
    ),
)
_FENCES = Section(
    "Fences",
    (
        Panel(
            "What holds pods",
            "Pods on cards by the strongest of what holds them: a MIG instance, the driver, MPS, a "
            "library, their frameworks' settings, or nothing but eviction (agent).",
            (Query(f"count by (fence) ({_figure('fence')})", "{{fence}}"),),
            Kind.STACK,
            missing="none",
            width=24,
        ),
        Panel(
            "Verdicts",
            "What the agents make of fenced pods, on the nodes that are chosen: within, holding "
            "(over, but not for long enough), would evict, evict, ...",
            (
                Query(
                    many("gpufence_fenced_pods", NODE.selector, "outcome", "sum") + " > 0",
                    "{{outcome}}",
                ),
            ),
            Kind.STACK,
        ),
        Panel(
            "Pods over their limits",
            "By namespace and mode. Only those in mode evict are evicted.",
            (
                Query(
                    many("gpufence_violating_pods", _CHOSEN, "namespace, mode", "sum"),
                    "{{namespace}} ({{mode}})",
                ),
            ),
            missing="none",
        ),
        Panel(
            "Times a pod went over",
            "How often a pod went over its limit on a card, since its agent began.",
            (
                Query(
                    many("gpufence_violations_total", _CHOSEN, "namespace, mode", "sum"),
                    "{{namespace}} ({{mode}})",
                ),
            ),
            missing="none",
        ),
    ),
)
TENANTS = Dashboard(
    "tenants",
    "gpufence: tenants",
    "What pods may hold, were told and hold, whether they use it, and what becomes of who breaks "
    "his limit.",
    (NAMESPACE, NODE),
    (_NOW, Section("Each pod", (_TABLE,)), _MEMORY, _USE, _FENCES),
)
