"""Tenants: limit, configured, used, idle, and what the agents make of it."""

from tools.dashboards.cards import NODE, evictions
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
    growth_from_nothing,
    many,
    rate,
    since,
)

CARD = Variable("card", "gpufence_pod_memory_used_bytes")
NAMESPACE = Variable("namespace", "gpufence_pod_memory_used_bytes")
_OF_NAMESPACE = f"{NAMESPACE.selector}, {NODE.selector}"
_CHOSEN = f"{_OF_NAMESPACE}, {CARD.selector}"
_POD = "namespace, pod, node, card"
_IDLE_SECONDS = 600


def _figure(metric: str) -> str:
    return f"gpufence_pod_{metric}{{{_CHOSEN}}}"


def _of_pod(metric: str) -> str:
    return many(f"gpufence_pod_{metric}", _CHOSEN, _POD)


def _sum(metric: str) -> str:
    return f"sum({_figure(metric)})"


_CAPPED = growth_from_nothing("gpufence_pod_capped_total", _OF_NAMESPACE)
_VIOLATIONS = growth_from_nothing("gpufence_violations_total", _OF_NAMESPACE)
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
        figure("Memory used", "What their processes hold.", _sum(_USED), "bytes"),
        figure(
            "Memory limits",
            "What they may hold, where that is limited.",
            _sum(_LIMIT),
            "bytes",
        ),
        figure(
            "Memory configured",
            "What their frameworks are configured to hold, as far as they are.",
            _sum(_TOLD),
            "bytes",
        ),
        figure(
            "Pods over their limits",
            "Pods that hold more than they may. Those in mode evict are evicted in time.",
            f"sum(gpufence_violating_pods{{{_OF_NAMESPACE}}}) or 0 * count({_figure(_USED)})",
            "short",
            (1, DOUBTFUL),
        ),
        figure(
            "Memory used by idle pods",
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
        Query(_of_pod(_USED), "Used", "bytes"),
        Query(_of_pod(_LIMIT), "Limit", "bytes"),
        Query(_of_pod(_TOLD), "Configured", "bytes"),
        Query(f"{_of_pod(_USED)} / {_of_pod(_LIMIT)}", "Used of limit", "percentunit"),
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
            "Memory: limits, configured, used",
            "Of all pods that are chosen. Used above configured is memory that frameworks do not "
            "count; used above the limits is taken from neighbours.",
            (
                Query(_sum(_LIMIT), "limit"),
                Query(_sum(_TOLD), "configured"),
                Query(_sum(_USED), "used"),
            ),
            unit="bytes",
        ),
        Panel(
            "Memory used by namespace",
            "What the pods of each namespace hold.",
            (Query(f"sum by (namespace) ({_figure(_USED)})", "{{namespace}}"),),
            Kind.STACK,
            "bytes",
        ),
        Panel(
            "Pods closest to their limits",
            "The fifteen pods that use most of what they may.",
            (
                Query(
                    f"topk(15, {_of_pod(_USED)} / {_of_pod(_LIMIT)})",
                    "{{namespace}}/{{pod}} on {{node}}",
                ),
            ),
            unit="percentunit",
            steps=((1.0, BAD),),
        ),
        Panel(
            "Memory borrowed, by namespace",
            "What pods hold above their requests, of what idle pods were promised. It is asked "
            "back as soon as those need it.",
            (Query(f"sum by (namespace) ({_figure('borrowed_bytes')})", "{{namespace}}"),),
            Kind.STACK,
            "bytes",
            width=24,
            missing="none",
        ),
    ),
)
_USE = Section(
    "Use",
    (
        Panel(
            "Cards busy by namespace",
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
            "Idle pods by namespace",
            "Pods that have done nothing on a card for ten minutes. A pod of unknown state is "
            "not counted.",
            (Query(f"sum by (namespace) {_IS_IDLE}", "{{namespace}}"),),
            Kind.STACK,
        ),
        Panel(
            "Memory used by idle pods, by namespace",
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
            "Containers that ended at their cap",
            "How often a container failed since it may not allocate more, since the point before.",
            (Query(f"sum by (namespace) ({_CAPPED})", "{{namespace}}"),),
            missing="none",
        ),
        Panel(
            "Pods by fence",
            "Pods on cards by the strongest of what holds them: a MIG instance, the driver, MPS, a "
            "library, their frameworks' settings, or nothing but eviction (agent).",
            (Query(f"count by (fence) ({_figure('fence')})", "{{fence}}"),),
            Kind.STACK,
            missing="none",
        ),
        Panel(
            "Pods evicted within the hour, by owner",
            "Each pod counts for an hour. Eviction does not cure an owner that is evicted again "
            "and again.",
            (
                Query(
                    many("gpufence_owner_evicted_pods", _OF_NAMESPACE, "namespace, owner", "sum"),
                    "{{namespace}} {{owner}}",
                ),
            ),
            missing="none",
            steps=((3, BAD),),
        ),
        Panel(
            "Pods by verdict",
            "What the agents make of fenced pods, on the nodes that are chosen: within, holding "
            "(over, but not for long enough), would_evict, evict, ...",
            (
                Query(
                    many("gpufence_fenced_pods", NODE.selector, "outcome", "sum") + " > 0",
                    "{{outcome}}",
                ),
            ),
            Kind.STACK,
        ),
        Panel(
            "Pods over their limits, by namespace",
            "By namespace and mode. Only those in mode evict are evicted.",
            (
                Query(
                    many("gpufence_violating_pods", _OF_NAMESPACE, "namespace, mode", "sum"),
                    "{{namespace}} ({{mode}})",
                ),
            ),
            missing="none",
        ),
        Panel(
            "Limit violations",
            "How often a pod went over its limit on a card, since the point before.",
            (
                Query(
                    f"sum by (namespace, mode) ({_VIOLATIONS})",
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
    "What pods may hold, are configured to hold and use, whether they work, and what becomes of "
    "those over their limits.",
    (NODE, CARD, NAMESPACE),
    (_NOW, Section("Each pod", (_TABLE,)), _MEMORY, _USE, _FENCES),
    (evictions(_OF_NAMESPACE),),
)
