"""Cards: what of their memory is in use, promised, owed, or nobody's."""

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
)

NODE = Variable("node", "gpufence_card_info")
_OF_NODE = NODE.selector
_LABELS = "node, index, model, card"
_NAME = "{{node}} #{{index}} {{model}}"
_GIB = float(1 << 30)


def _named(expr: str) -> str:
    """Add what people call a card: its number on the node, and its model."""
    info = many("gpufence_card_info", _OF_NODE, _LABELS)
    return f"{expr} * on (node, card) group_left (index, model) {info}"


def _of_card(metric: str, function: str = "max") -> str:
    return many(f"gpufence_card_{metric}", _OF_NODE, "node, card", function)


def _sum(metric: str) -> str:
    return f"sum(gpufence_card_{metric}{{{_OF_NODE}}})"


def _lines(title: str, about: str, expr: str, unit: str = "bytes") -> Panel:
    return Panel(title, about, (Query(_named(expr), _NAME),), unit=unit)


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
            "Not readable",
            "Cards that cannot be read: no pod is evicted there. Event NVMLUnavailable of the Node "
            "says why.",
            f"sum(1 - gpufence_card_readable{{{_OF_NODE}}})",
            "short",
            (1, BAD),
        ),
        figure("Memory", "Of all cards together.", _sum("memory_total_bytes"), "bytes"),
        figure(
            "In use",
            "Share of all memory that somebody holds, whoever it is.",
            f"{_sum('memory_used_bytes')} / {_sum('memory_total_bytes')}",
            "percentunit",
        ),
        figure(
            "Promised",
            "Limits of the pods that hold memory, of all memory. Above 100 % somebody's limit is "
            "worth nothing.",
            f"{_sum('memory_committed_bytes')} / {_sum('memory_total_bytes')}",
            "percentunit",
            (1.0001, DOUBTFUL),
        ),
        figure(
            "Of no pod",
            "Held by processes that belong to no pod of their node; nobody evicts those.",
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
        Query(_named(_of_card("memory_reserved_bytes")), "Driver's", "bytes"),
        Query(_named(_of_card("memory_committed_bytes")), "Promised", "bytes"),
        Query(_named(_of_card("memory_owed_bytes")), "Owed", "bytes"),
        Query(_named(_of_card("memory_unattributed_bytes")), "Of no pod", "bytes"),
    ),
    Kind.TABLE,
    width=24,
    rows=tuple(_LABELS.split(", ")),
)
_OVER_TIME = Section(
    "Over time",
    (
        Panel(
            "In use",
            "Share of a card's memory that somebody holds.",
            (Query(_named(_share("memory_used_bytes")), _NAME),),
            unit="percentunit",
            most=1.0,
        ),
        Panel(
            "Promised",
            "Limits of the pods on a card, of its memory: above 100 % they cannot all have what "
            "they may take. Event GPUMemoryOvercommitted of the Node.",
            (Query(_named(_share("memory_committed_bytes")), _NAME),),
            unit="percentunit",
            steps=((1.0001, DOUBTFUL),),
        ),
        _lines(
            "Owed and not free",
            "What fenced pods were promised and neither hold nor could get at this moment. Above "
            "zero the card is short: who is over his limit goes sooner.",
            f"clamp_min({_of_card('memory_owed_bytes')} - {_of_card('memory_free_bytes')}, 0)",
        ),
        _lines(
            "Pods",
            "Pods that hold memory of a card.",
            f"count by (node, card) (gpufence_pod_memory_used_bytes{{{_OF_NODE}}})",
            "short",
        ),
        _lines(
            "Of no pod",
            "Processes that belong to no pod of the node. Event GPUMemoryUnattributed of the Node.",
            _of_card("memory_unattributed_bytes"),
        ),
        _lines(
            "In no list",
            "In use, but by no process that the driver names: its own, managed or hidden memory.",
            _of_card("memory_unlisted_bytes"),
        ),
    ),
)
CARDS = Dashboard(
    "cards",
    "gpufence: cards",
    "What of each card's memory is in use, promised to pods, owed to them, or nobody's.",
    (NODE,),
    (_NOW, Section("Each card", (_TABLE,)), _OVER_TIME),
)
