"""PURE. The ConfigMap in which a node's need outlives its agent, and what is taken back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.concerns.need.ledger import need_of, restored
from agent.concerns.need.model import NO_NEED, StoredNeed
from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.need import bounded, need_configmap, read_need, write_bounded
from gpufence.shape import Object, as_object, as_text, as_texts
from gpufence.times import read_moment, write_moment

if TYPE_CHECKING:
    from gpufence.need import NodeNeed

_DAY: Final = len("2026-11-19")


def configmap(need: NodeNeed, now: str, version: str) -> dict[str, object]:
    """Make the object whole; `version` is the one it replaces, empty for a new one."""
    about = {"resourceVersion": version} if version else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": need_configmap(need.node),
            "labels": {
                "app.kubernetes.io/name": names.NEED_LABEL,
                "app.kubernetes.io/part-of": "gpufence",
            },
            **about,
        },
        "data": {
            names.NEED_KEY: write_bounded(need, now[:_DAY]),
            names.NEED_WRITTEN: now,
        },
    }


def stored_need(written: Object, node: str, now: str) -> StoredNeed:
    """
    Read back as much as an agent would have stored, whoever wrote it.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: no agent of this node wrote it.
    """
    data = as_texts(as_object(written, "configmap").get("data"), "data")
    need = read_need(as_text(data.get(names.NEED_KEY), names.NEED_KEY))
    if need.node != node:
        remedy = "delete the ConfigMap; it is written anew"
        raise InvalidError(Problem("need.node", need.node, f"is not {node}", remedy))
    at = as_text(data.get(names.NEED_WRITTEN), names.NEED_WRITTEN)
    return StoredNeed(bounded(need, now[:_DAY]), write_moment(read_moment(at, names.NEED_WRITTEN)))


def both(one: NodeNeed, other: NodeNeed) -> NodeNeed:
    """Put together what two agents of a node remember."""
    ledger = restored(restored(NO_NEED, StoredNeed(other)), StoredNeed(one))
    return need_of(ledger, one.node)
