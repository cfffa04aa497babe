"""Cards: what of their memory is in use, committed, or used by no pod."""

from tools.dashboards.panels import (
    BAD,
    DOUBTFUL,
    Annotation,
    Dashboard,
    Kind,
    Link,
    Panel,
    Query,
    Section,
    Variable,
    figure,
    many,
)

NODE = Variable("node", "gpufence_card_info")
_OF_NODE = NODE.selector
_LABELS = "node, index, model, card"
_NAME = "{{node}} #{{index}} {{model}}"
_GIB = float(1 << 30)
_PODS = Link("Pods on this card", "tenants", ("node", "card"))


def evictions(selector: str) -> Annotation:
    """Show each minute in which one more pod of an owner has been evicted."""
    owners = f"gpufence_owner_evicted_pods{{{selector}}}"
    expr = f"{owners} > ({owners} offset 1m or 0 * {owners})"
    return Annotation("Evictions", expr, "a pod of {{owner}} in {{namespace}} on {{node}}")


def _named(expr: str) -> str:
    """Add what people call a card: its number on the node, and its model."""
    info = many("gpufence_card_info", _OF_NODE, _LABELS)
    return f"{expr} * on (node, card) group_left (index, model) {info}"


def _of_card(metric: str, function: str = "max") -> str:
    return many(f"gpufence_card_{metric}", _OF_NODE, "node, card", function)


def _sum(metric: str) -> str:
    return f"sum(gpufence_card_{metric}{{{_OF_NODE}}})"


def _lines(title: str, about: str, expr: str, unit: str = "bytes") -> Panel:
    return Panel(title, about, (Query(_named(expr), _NAME),), unit=unit, to=_PODS)


def _share(part: str) -> str:
    return f"({_of_card(part)} / {_of_card('memory_total_bytes')})"


_NOW = Section(
    "Now",
    (
        figure(
            "Cards measured",
            "Cards whose memory and processes can be read.",
            _sum("readable"),
        ),
        figure(
            "Cards not readable",
            "Cards that cannot be read: no pod is evicted there. Event NVMLUnavailable of the Node "
            "says why.",
            f"sum(1 - gpufence_card_readable{{{_OF_NODE}}})",
            "short",
            (1, BAD),
        ),
        figure("Memory of all cards", "All cards together.", _sum("memory_total_bytes"), "bytes"),
        figure(
            "Memory in use",
            "Share of all memory that any process holds.",
            f"{_sum('memory_used_bytes')} / {_sum('memory_total_bytes')}",
            "percentunit",
        ),
        figure(
            "Memory committed",
            "Limits of the pods that hold memory, of all memory. Above 100 % they cannot all have "
            "what they may take.",
            f"{_sum('memory_committed_bytes')} / {_sum('memory_total_bytes')}",
            "percentunit",
            (1.0001, DOUBTFUL),
        ),
        figure(
            "Memory used by no pod",
            "Used by processes that belong to no pod of their node, which are never evicted.",
            _sum("memory_unattributed_bytes"),
            "bytes",
            (_GIB, DOUBTFUL),
        ),
    ),
)
_TABLE = Panel(
    "Cards",
    "Each card as its agent saw it last.",
    (
        Query(_named(_of_card("memory_total_bytes")), "Memory", "bytes"),
        Query(_named(_of_card("memory_used_bytes")), "In use", "bytes"),
        Query(_named(_of_card("memory_free_bytes")), "Free", "bytes"),
        Query(_named(_of_card("memory_reserved_bytes")), "Reserved by the driver", "bytes"),
        Query(_named(_of_card("memory_committed_bytes")), "Committed", "bytes"),
        Query(_named(_of_card("memory_owed_bytes")), "Committed, not used", "bytes"),
        Query(_named(_of_card("memory_unattributed_bytes")), "Used by no pod", "bytes"),
    ),
    Kind.TABLE,
    width=24,
    rows=tuple(_LABELS.split(", ")),
    to=_PODS,
)
_OVER_TIME = Section(
    "Over time",
    (
        Panel(
            "Memory in use by card",
            "Share of a card's memory that any process holds.",
            (Query(_named(_share("memory_used_bytes")), _NAME),),
            unit="percentunit",
            most=1.0,
            to=_PODS,
        ),
        Panel(
            "Memory committed by card",
            "Limits of the pods on a card, of its memory: above 100 % they cannot all have what "
            "they may take. Event GPUMemoryOvercommitted of the Node.",
            (Query(_named(_share("memory_committed_bytes")), _NAME),),
            unit="percentunit",
            steps=((1.0001, DOUBTFUL),),
            to=_PODS,
        ),
        _lines(
            "Committed, not used and not free",
            "What is reserved for fenced pods and could not be allocated at this moment. Above "
            "zero there is memory pressure: pods over their limits are evicted sooner.",
            f"clamp_min({_of_card('memory_owed_bytes')} - {_of_card('memory_free_bytes')}, 0)",
        ),
        _lines(
            "Pods by card",
            "Pods that hold memory of a card.",
            f"count by (node, card) (gpufence_pod_memory_used_bytes{{{_OF_NODE}}})",
            "short",
        ),
        _lines(
            "Memory used by no pod, by card",
            "Processes that belong to no pod of the node. Event GPUMemoryUnattributed of the Node.",
            _of_card("memory_unattributed_bytes"),
        ),
        _lines(
            "Memory of no listed process",
            "In use, but by no process that the driver lists: its own, managed or hidden memory.",
            _of_card("memory_unlisted_bytes"),
        ),
    ),
)
CARDS = Dashboard(
    "cards",
    "gpufence: cards",
    "What of each card's memory is in use, committed to pods, or used by no pod.",
    (NODE,),
    (_NOW, Section("Each card", (_TABLE,)), _OVER_TIME),
    (evictions(_OF_NODE),),
)
