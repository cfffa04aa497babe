"""What Prometheus expects of a page of metrics, and we of ours."""

import re
from collections.abc import Iterator
from typing import Final

UNITS: Final = ("_bytes", "_seconds", "_total", "_info", "_ratio", "_fds")
COUNTS: Final = frozenset(
    f"gpufence_{name}"
    for name in (
        "brake",
        "card_readable",
        "cards_unfenced",
        "cards_unidentified",
        "cluster_fresh",
        "cluster_published",
        "controller_brake",
        "controller_fresh",
        "controller_leader",
        "controller_needs",
        "controller_nodes",
        "controller_owners",
        "controller_owners_contended",
        "controller_pods",
        "controller_profiles",
        "driver_limits",
        "driver_limits_unsupported",
        "fenced_pods",
        "owner_evicted_pods",
        "pod_fence",
        "pod_gpu_processes",
        "violating_pods",
        "webhook_applied_profiles",
        "webhook_gpu_nodes",
        "webhook_namespaces",
        "webhook_ready",
    )
)
"""Numbers of things, and flags of 0 and 1: they have no unit."""

DURATIONS: Final = (
    "_timestamp_seconds",
    "_start_time_seconds",
    "_duration_seconds",
    "_pass_seconds",
)
"""Of a gauge; a time since something is `time()` less the time of it."""

FREE: Final = frozenset(
    {
        *("card", "index", "le", "model", "namespace", "node", "owner", "parent", "pod"),
        *("profile", "version"),
    }
)
"""Labels whose values are names of things; those of all others are words of ours."""

_HELP = re.compile(r"# HELP (\S+) (.+)")
_TYPE = re.compile(r"# TYPE (\S+) (counter|gauge|histogram)")
_LINE = re.compile(r'(\w+)(\{(?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_WORD = re.compile(r"[a-z0-9._-]*")
_OLD = re.compile(r"Deprecated, use (\w+)")
_SUFFIXES = ("_bucket", "_sum", "_count")


def problems(page: str) -> Iterator[str]:
    """Yield what is wrong with a page, each with its line."""
    if not page.endswith("\n"):
        yield "the page does not end with a line end"
    kinds: dict[str, str] = {}
    old: dict[str, str] = {}
    helped = ""
    seen: set[str] = set()
    for line in page.splitlines():
        if match := _HELP.fullmatch(line):
            helped = match[1]
            yield from _help(match[1], match[2])
            if replaced := _OLD.fullmatch(match[2]):
                old[helped] = replaced[1]
        elif match := _TYPE.fullmatch(line):
            if match[1] != helped or match[1] in kinds:
                yield f"{line}: not right after its HELP, or a second time"
            kinds[match[1]] = match[2]
            if helped not in old:
                yield from _name(match[1], match[2])
        elif match := _LINE.fullmatch(line):
            yield from _sample(match, kinds, helped, seen)
            if helped not in old:
                yield from _labels(line)
        else:
            yield f"{line}: no line of the format"
    yield from (f"{name}: there is no {new}" for name, new in old.items() if new not in kinds)


def _help(name: str, text: str) -> Iterator[str]:
    if text.endswith(".") or not text[0].isupper():
        yield f"{name}: its help ends with a period, or begins small"


def _name(name: str, kind: str) -> Iterator[str]:
    if not name.startswith(("gpufence_", "process_")):
        yield f"{name}: neither ours nor that of every process"
    if (kind == "counter") != name.endswith("_total"):
        yield f"{name}: counters and nothing else end with _total"
    if not name.endswith(UNITS) and name not in COUNTS:
        yield f"{name}: has no base unit"
    if kind == "gauge" and name.endswith("_seconds") and not name.endswith(DURATIONS):
        yield f"{name}: neither a time nor a duration"


def _sample(
    match: re.Match[str], kinds: dict[str, str], helped: str, seen: set[str]
) -> Iterator[str]:
    name, labels, value = match[1], match[2] or "", match[3]
    base = name
    if kinds.get(helped) == "histogram":
        base = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
    if base != helped:
        yield f"{name}: under the head of {helped}"
    if name + labels in seen:
        yield f"{name}{labels}: twice"
    seen.add(name + labels)
    try:
        float(value)
    except ValueError:
        yield f"{name}: {value} is no number"


def _labels(line: str) -> Iterator[str]:
    for label, value in _LABEL.findall(line):
        if label not in FREE and not _WORD.fullmatch(value):
            yield f"{line}: {label} is no word"
