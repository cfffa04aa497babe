"""The shared vectors, held against the domain itself."""

from typing import Any

import pytest

from gpufence.annotations import PodOptions, read_namespace_options, read_pod_options
from gpufence.dialects import Undeclared, Unreadable
from gpufence.held import held_limits
from gpufence.limits import Limits, read_limits
from gpufence.pods import read_pod
from gpufence.share import ShareTerms, allowance, reserve_bytes, write_fraction
from tests.support.tree import Vector, vectors


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.name)
def test_every_vector_leads_to_its_expected_limits(vector: Vector) -> None:
    """A pod of the shared vectors gets exactly the limits, parts and shares written beside it."""
    assert vector.expected == _outcome(vector)


def test_the_vectors_cover_what_they_promise() -> None:
    """There are at least sixty vectors, from 4 GiB to 192 GiB, of all dialects."""
    rows = vectors()
    cards = {row.card.memory_bytes // 2**30 for row in rows if row.card.memory_bytes}

    assert len(rows) >= 60
    assert (min(cards), max(cards)) == (4, 192)
    assert {
        "gpushare",
        "volcano",
        "volcano-vgpu",
        "hami",
        "kai",
        "nvidia",
        "mig",
        "annotation",
    } <= {row.expected.get("dialect") for row in rows}


def _outcome(vector: Vector) -> dict[str, Any]:
    pod = read_pod(vector.pod)
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    said = read_limits(pod, options, read_namespace_options(vector.namespace), vector.card)
    if isinstance(said, Undeclared):
        return {"undeclared": True}
    if isinstance(said, Unreadable):
        held = held_limits(pod, options, read_namespace_options(vector.namespace), vector.card)
        amount = {"held": held.limit_bytes} if isinstance(held, Limits) else {}
        return {"unreadable": said.problem.field, "own_words": said.own_words, **amount}
    promised = {} if said.promised_bytes is None else {"promised": said.promised_bytes}
    return {
        **promised,
        "dialect": said.dialect,
        "limit": said.limit_bytes,
        "enforced": said.enforced,
        "library_caps": said.library_caps,
        "notes": len(said.notes),
        "parts": _parts(said, options, vector),
    }


def _parts(limits: Limits, options: PodOptions, vector: Vector) -> dict[str, Any]:
    card = vector.card.memory_bytes
    parts: dict[str, Any] = {}
    for part in limits.parts:
        parts[part.container] = {"limit": part.limit_bytes}
        if part.request_bytes != part.limit_bytes:
            parts[part.container]["request"] = part.request_bytes
        if card is not None and part.limit_bytes is not None:
            reserve = reserve_bytes(vector.card.compute_capability, cards=part.cards)
            may = allowance(
                part.limit_bytes, card, ShareTerms(reserve, options.processes, options.headroom)
            )
            parts[part.container] |= {
                "allowance": may.bytes,
                "fraction": write_fraction(may.numerator, may.denominator * card),
            }
            if may.starved:
                parts[part.container]["starved"] = True
    return parts
