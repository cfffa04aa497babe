"""
GPUMemoryProfile: what an owner's models need, as an object of the cluster. People write its spec,
the controller its status, and `kubectl get gmp` shows it.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import InvalidError, Problem
from gpufence.need.codec import DAY
from gpufence.need.measured import Confidence
from gpufence.need.rows import NeedKey
from gpufence.need.summary import NO_TERMS, NeedReasons, NeedSummary, ProposalTerms, together
from gpufence.quantity import MIB, read_bytes
from gpufence.shape import (
    BYTES,
    COUNT,
    FLAG,
    MAYBE_BYTES,
    TEXT,
    WHOLE_SECONDS,
    FieldKind,
    Object,
    RowKind,
    as_integer,
    as_object,
    as_text,
    objects,
    one,
)
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIND: Final = "GPUMemoryProfile"
READY: Final = "Ready"  # every container has a target
AT_CAP: Final = "AtCap"  # some took all they could, so that their need cannot be seen
LOW_CONFIDENCE: Final = "LowConfidence"  # too little was measured of some

_MOST_NAME = 253
_HASH = 10
_MOST_CONTAINERS = 64
_MOST_NAMED = 3
_NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})
_MARGIN = re.compile(r"(\d{1,3})%", re.ASCII)


class Apply(StrEnum):
    """What is done with a target."""

    NEVER = "Never"  # shown only
    AT_CREATE = "AtCreate"  # taken for the limit of pods that are made from now on


class MemoryProfile(NamedTuple):
    """
    A profile as it stands: whose it is, what somebody wants to be done, and what was found out.
    `applied` is what each container of pods gets that are made from now on.
    """

    namespace: str
    name: str
    generation: int
    kind: str
    owner: str
    apply: Apply = Apply.NEVER
    terms: ProposalTerms = NO_TERMS
    containers: tuple[NeedSummary, ...] = ()
    applied: Mapping[str, int] = _NO_AMOUNTS


class ProfileTotal(NamedTuple):
    """What all containers of a pod need together on the card on which they need the most."""

    limit_bytes: int | None
    peak_bytes: int
    target_bytes: int | None
    confidence: Confidence
    capped: bool


class ProfileCondition(NamedTuple):
    """A condition without its times, which only the controller can tell."""

    type: str
    holds: bool
    reason: str
    message: str


def profile_name(kind: str, name: str) -> str:
    """Return what the profile of an owner is called; a long name ends in a hash of the whole."""
    whole = f"{kind.lower()}-{name}"
    if len(whole) <= _MOST_NAME:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_HASH]
    return f"{whole[: _MOST_NAME - _HASH - 1].rstrip('-.')}-{digest}"


def read_profile(raw: Object) -> MemoryProfile:
    """
    Read a profile as the API server has it.

    Raises:
        InvalidError: it is none, or somebody wrote into its status.
    """
    metadata = as_object(raw.get("metadata"), "metadata")
    spec = as_object(raw.get("spec"), "spec")
    status = as_object(raw.get("status"), "status")
    target = as_object(spec.get("targetRef"), "spec.targetRef")
    namespace = as_text(metadata.get("namespace"), "metadata.namespace")
    kind = as_text(target.get("kind"), "spec.targetRef.kind")
    owner = as_text(target.get("name"), "spec.targetRef.name")
    rows = objects(status.get("containers"), "status.containers")[:_MOST_CONTAINERS]
    return MemoryProfile(
        namespace=namespace,
        name=as_text(metadata.get("name"), "metadata.name"),
        generation=as_integer(metadata.get("generation", 0), "metadata.generation"),
        kind=kind,
        owner=owner,
        apply=_read_apply(spec.get("apply"), "spec.apply"),
        terms=_read_terms(spec),
        containers=tuple(
            [
                _read_container(row, f"status.containers[{place}]", (namespace, kind, owner))
                for place, row in enumerate(rows)
            ]
        ),
        applied=_read_applied(status, "status.applied"),
    )


def write_status(
    summaries: Sequence[NeedSummary], generation: int, applied: Mapping[str, int] = _NO_AMOUNTS
) -> dict[str, object]:
    """
    Write what was found out about an owner, without its conditions; `generation` is that of the
    spec by which it was.
    """
    status: dict[str, object] = {
        "observedGeneration": generation,
        "containers": [
            {"name": item.key.container, "card": item.key.card, **_CONTAINER.write(item[1:])}
            for item in summaries[:_MOST_CONTAINERS]
        ],
    }
    if applied:
        status["applied"] = [
            _AMOUNT.write(item) for item in sorted(applied.items())[:_MOST_CONTAINERS]
        ]
    total = total_of(summaries)
    if total is not None:
        status |= _TOTAL.write(_in_mebibytes(total))
    return status


def _in_mebibytes(total: ProfileTotal) -> ProfileTotal:
    """Round up what `kubectl get` shows side by side; the amounts of containers are exact."""
    return total._replace(
        limit_bytes=_rounded(total.limit_bytes),
        peak_bytes=_rounded(total.peak_bytes) or 0,
        target_bytes=_rounded(total.target_bytes),
    )


def _rounded(amount: int | None) -> int | None:
    return None if amount is None else -(-amount // MIB) * MIB


def total_of(summaries: Sequence[NeedSummary]) -> ProfileTotal | None:
    """
    Add up the containers of an owner on each model of card, and return the most; None for none.
    """
    by_card: dict[str, list[NeedSummary]] = {}
    for item in summaries:
        by_card.setdefault(item.key.card, []).append(item)
    totals = [_total(group) for _, items in sorted(by_card.items()) for group in together(items)]
    return max(totals, key=lambda total: (total.target_bytes or 0, total.peak_bytes), default=None)


def conditions_of(summaries: Sequence[NeedSummary]) -> tuple[ProfileCondition, ...]:
    """Return whether there is a target for every container, and what stands against one."""
    low = [item for item in summaries if item.confidence is Confidence.LOW]
    capped = [item for item in summaries if item.capped]
    missing = [item for item in summaries if item.target_bytes is None]
    return (
        ProfileCondition(
            READY, not missing, "NoTarget" if missing else "Measured", _because(missing)
        ),
        ProfileCondition(
            AT_CAP, bool(capped), "TookAll" if capped else "BelowCap", _because(capped)
        ),
        ProfileCondition(
            LOW_CONFIDENCE, bool(low), "TooLittle" if low else "Enough", _because(low)
        ),
    )


def _total(items: Sequence[NeedSummary]) -> ProfileTotal:
    order = list(Confidence)
    return ProfileTotal(
        _sum([item.limit_bytes for item in items]),
        sum(item.peak_bytes for item in items),
        _sum([item.target_bytes for item in items]),
        min((item.confidence for item in items), key=order.index),
        any(item.capped for item in items),
    )


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _because(about: Sequence[NeedSummary]) -> str:
    return listed([f"{item.key.container}: {item.reasons.target}" for item in about], _MOST_NAMED)


def _read_container(written: Object, path: str, owner: tuple[str, str, str]) -> NeedSummary:
    container = as_text(written.get("name"), f"{path}.name")
    key = NeedKey(*owner, container, as_text(written.get("card"), f"{path}.card"))
    return NeedSummary(key, *_CONTAINER.read(written, path))


def _read_applied(status: Object, path: str) -> dict[str, int]:
    return dict(_AMOUNT.read_all(status.get("applied"), path)[:_MOST_CONTAINERS])


def _read_terms(spec: Object) -> ProposalTerms:
    most, margin = spec.get("max"), spec.get("margin")
    return ProposalTerms(
        NO_TERMS.margin_percent if margin is None else _read_margin(margin, "spec.margin"),
        None if most is None else read_bytes(most, "spec.max"),
    )


def _read_margin(value: object, path: str) -> int:
    text = as_text(value, path)
    match = _MARGIN.fullmatch(text)
    if match is None:
        raise InvalidError(Problem(path, text, "is no margin", "write one such as 15%"))
    return int(match[1])


def _read_apply(value: object, path: str) -> Apply:
    text = as_text(value, path) or Apply.NEVER
    if text in list(Apply):
        return Apply(text)
    raise InvalidError(Problem(path, text, "is unknown", f"write {' or '.join(Apply)}"))


def _read_confidence(value: object, path: str) -> Confidence:
    text = as_text(value, path)
    if text in list(Confidence):
        return Confidence(text)
    raise InvalidError(Problem(path, text, "is unknown", f"write {', '.join(Confidence)}"))


_AMOUNT: Final = RowKind(lambda name, memory: (name, memory), (("name", TEXT), ("memory", BYTES)))
_CONFIDENCE: Final = FieldKind(str, _read_confidence)
_REASONS: Final = RowKind(
    NeedReasons,
    (("peak", TEXT), ("target", TEXT), ("confidence", TEXT), ("request", TEXT)),
    {"request": ""},
)
_NOTHING: Final = {"limit": None, "target": None, "told": None}
_CONTAINER: Final = RowKind(
    lambda *values: values,
    (
        ("peak", BYTES),
        ("target", MAYBE_BYTES),
        ("confidence", _CONFIDENCE),
        ("days", COUNT),
        ("pods", COUNT),
        ("heldSeconds", WHOLE_SECONDS),
        ("limit", MAYBE_BYTES),
        ("told", MAYBE_BYTES),
        ("capped", FLAG),
        ("outOfMemory", COUNT),
        ("evictions", COUNT),
        ("reasons", one(_REASONS)),
        ("lastDay", DAY),
        ("request", MAYBE_BYTES),
    ),
    {**_NOTHING, "lastDay": "", "request": None},
)
_TOTAL: Final = RowKind(
    ProfileTotal,
    (
        ("limit", MAYBE_BYTES),
        ("peak", BYTES),
        ("target", MAYBE_BYTES),
        ("confidence", _CONFIDENCE),
        ("capped", FLAG),
    ),
    _NOTHING,
)
