"""What promtool would complain about in a page, and what our own rules add."""

import re
from collections.abc import Iterator
from typing import Final

UNITS: Final = ("_bytes", "_seconds", "_total", "_info", "_ratio")
COUNTS: Final = frozenset(
    {
        "gpufence_brake",
        "gpufence_card_readable",
        "gpufence_cards_unfenced",
        "gpufence_cards_unidentified",
        "gpufence_cluster_fresh",
        "gpufence_cluster_published",
        "gpufence_pod_gpu_processes",
        "gpufence_verdicts",
        "gpufence_violating_pods",
    }
)
"""Numbers of things, and flags of 0 and 1: they have no unit."""

_HELP = re.compile(r"# HELP (\S+) (.+)")
_TYPE = re.compile(r"# TYPE (\S+) (counter|gauge|histogram)")
_LINE = re.compile(r'(\w+)(\{(?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)')
_SUFFIXES = ("_bucket", "_sum", "_count")


def problems(page: str) -> Iterator[str]:
    """Yield what is wrong with a page, each with its line."""
    if not page.endswith("\n"):
        yield "the page does not end with a line end"
    kinds: dict[str, str] = {}
    helped = ""
    seen: set[str] = set()
    for line in page.splitlines():
        if match := _HELP.fullmatch(line):
            helped = match[1]
            yield from _help(match[1], match[2])
        elif match := _TYPE.fullmatch(line):
            if match[1] != helped or match[1] in kinds:
                yield f"{line}: not right after its HELP, or a second time"
            kinds[match[1]] = match[2]
            yield from _name(match[1], match[2])
        elif match := _LINE.fullmatch(line):
            yield from _sample(match, kinds, helped, seen)
        else:
            yield f"{line}: no line of the format"


def _help(name: str, text: str) -> Iterator[str]:
    if not text.endswith(".") or not text[0].isupper():
        yield f"{name}: its help is no sentence"


def _name(name: str, kind: str) -> Iterator[str]:
    if not name.startswith("gpufence_"):
        yield f"{name}: not ours"
    if (kind == "counter") != name.endswith("_total"):
        yield f"{name}: counters and nothing else end with _total"
    if not name.endswith(UNITS) and name not in COUNTS:
        yield f"{name}: has no base unit"


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
