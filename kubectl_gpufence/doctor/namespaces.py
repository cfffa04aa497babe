"""
PURE. The namespaces: who is fenced, who meant to be, and which pods slipped through.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpufence.errors import shown
from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.mode import MODES
from gpufence.names import MODE
from kubectl_gpufence.scene import named
from kubectl_gpufence.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.facts import Facts, Namespace

_NAMESPACES = "namespaces"
_PODS = "pods"
_ASK = "ask an administrator to run this"


def check_namespaces(facts: Facts) -> Iterator[Finding]:
    if facts.namespaces.hidden:
        yield unknown(_NAMESPACES, facts.namespaces.hidden, _ASK)
        return
    found = facts.namespaces.value or []
    yield _fenced(found)
    for item in found:
        if item.mode is not None and item.mode not in MODES:
            yield wrong(
                _NAMESPACES,
                f"{item.name} has {MODE}: {shown(item.mode)}, which counts as none at all",
                f"kubectl label namespace {item.name} {MODE}=observe --overwrite",
            )
    yield from _pods(facts, {item.name for item in found if item.mode in MODES})


def _fenced(found: list[Namespace]) -> Finding:
    modes = Counter(item.mode for item in found if item.mode in MODES)
    if not modes:
        return look(
            _NAMESPACES,
            "no namespace is fenced",
            f"kubectl label namespace NAME {MODE}=observe is the first step",
        )
    told = ", ".join(f"{modes[mode]} in mode {mode}" for mode in MODES if modes[mode])
    return ok(_NAMESPACES, f"{counted(sum(modes.values()), 'namespace')} fenced: {told}")


def _pods(facts: Facts, fenced: set[str]) -> Iterator[Finding]:
    if facts.pods.hidden:
        yield unknown(_PODS, facts.pods.hidden, _ASK)
        return
    inside = [pod for pod in facts.pods.value or [] if pod.namespace in fenced]
    missed = [f"{pod.namespace}/{pod.name}" for pod in inside if not pod.injected]
    if missed:
        yield wrong(
            _PODS,
            f"the webhook never saw {counted(len(missed), 'pod')} of fenced namespaces: "
            f"{named(missed)}",
            "delete them, so that their controllers make them anew; were they made after the label "
            "was set, the webhook was away or is not called",
        )
    elif inside:
        yield ok(_PODS, f"the webhook has seen {counted(len(inside), 'GPU pod')} in them, all")
    damaged = [f"{pod.namespace}/{pod.name}" for pod in inside if pod.words.trouble]
    if damaged:
        yield look(
            _PODS,
            f"the plan of {counted(len(damaged), 'pod')} cannot be read: {named(damaged)}",
            "upgrade this plugin if the webhook is newer; else delete the pods",
        )
