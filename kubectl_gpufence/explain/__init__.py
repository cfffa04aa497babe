"""
PURE. The whole story of one pod: declared, injected, measured, and what follows from it.

Everything about the injection comes from the plan on the pod, which holds all figures; the
webhook's own code is not needed, and another version of it may have written them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.explain.advice import to_do
from kubectl_gpufence.explain.declared import declared
from kubectl_gpufence.explain.injected import injected
from kubectl_gpufence.explain.measured import follows, measured
from kubectl_gpufence.table import Tone, coloured, wrapped
from kubectl_gpufence.words import safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.explain.story import Story
    from kubectl_gpufence.table import Look

__all__ = ["tell"]

_INDENT = "  "


def tell(story: Story, look: Look) -> list[str]:
    """
    Tell it in chapters.
    """
    found = [*_head(story, look)]
    for title, lines in (
        ("DECLARED", declared(story, look)),
        ("INJECTED", injected(story, look)),
        ("WARNINGS", _bullets(story.warnings, look)),
        ("MEASURED", measured(story, look)),
        ("EVENTS", _bullets((event.sentence for event in story.events), look)),
        ("WHAT FOLLOWS", _bullets(follows(story), look)),
        ("WHAT TO DO", _bullets(to_do(story), look)),
    ):
        told = list(lines)
        if told:
            found += ["", coloured(title, Tone.STRONG, look), *told]
    return found


def _head(story: Story, look: Look) -> Iterator[str]:
    pod = story.pod
    where = f"on node {safe(pod.node)}" if pod.node else "not placed yet"
    phase = "terminating" if pod.terminating else safe(pod.phase) or "of unknown phase"
    mode = {None: "namespace unknown", "": "namespace not fenced"}.get(
        story.mode, f"namespace in mode {safe(story.mode or '')}"
    )
    owner = f", owned by {safe(pod.owner)}" if pod.owner else ""
    yield from wrapped(
        f"pod {safe(pod.namespace)}/{safe(pod.name)}: {phase}, {where}, {mode}{owner}",
        _INDENT,
        look,
        first="",
    )
    summary = pod.annotations.get("gpufence.io/summary")
    if summary:
        yield from wrapped(safe(summary), _INDENT, look)


def _bullets(sentences: Iterator[str] | tuple[str, ...], look: Look) -> Iterator[str]:
    for sentence in sentences:
        yield from wrapped(safe(sentence), "    ", look, first="  - ")
