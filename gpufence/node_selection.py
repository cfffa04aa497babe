"""
Which nodes a pod allows itself, as Kubernetes' scheduler reads selectors, affinities and taints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.shape import as_list, as_object, as_text, objects, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.pods import Pod
    from gpufence.shape import Object

NAME_FIELD: Final = "metadata.name"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_DIGITS: Final = 63
_MOST_REQUIREMENTS: Final = 256
"""What is read of what a pod requires of its node."""

_REPELLING: Final = ("NoSchedule", "NoExecute")


def allows(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """
    Return whether a pod's nodeSelector and required node affinity allow a node; who requires too
    much to be read is allowed none.

    Raises:
        InvalidError: the affinity is none.
    """
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    required = pod.affinity.get(REQUIRED)
    if required is None:
        return True
    terms = objects(as_object(required, REQUIRED).get("nodeSelectorTerms"), REQUIRED)
    return not too_many(terms) and any(_matches(term, name, labels) for term in terms)


def too_many(terms: Iterable[Object]) -> bool:
    """Return whether terms of an affinity require more than anybody reads."""
    fields = ("matchExpressions", "matchFields")
    required = sum(1 + sum(len(as_list(term.get(key), key)) for key in fields) for term in terms)
    return required > _MOST_REQUIREMENTS


def holds(operator: object, value: str | None, bounds: tuple[str, ...]) -> bool:
    """Return whether a label's value, None where it is absent, is what an operator asks for."""
    match operator:
        case "In":
            return value in bounds
        case "NotIn":
            return value not in bounds
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compared(value, bounds) > 0
        case "Lt":
            return _compared(value, bounds) < 0
        case _:
            return False


def tolerates(
    tolerations: Iterable[Mapping[str, str]], taints: Iterable[Mapping[str, str]]
) -> bool:
    """Return whether none of a node's taints keeps away a pod with these tolerations."""
    known = tuple(tolerations)
    return all(
        any(_covers(toleration, taint) for toleration in known)
        for taint in taints
        if taint.get("effect") in _REPELLING
    )


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether every requirement of a term holds; an empty term matches no node."""
    by_label = objects(term.get("matchExpressions"), "matchExpressions")
    by_field = objects(term.get("matchFields"), "matchFields")
    return bool(by_label or by_field) and (
        all(_requires(item, labels) for item in by_label)
        and all(_requires(item, {NAME_FIELD: name}) for item in by_field)
    )


def _requires(requirement: Object, known: Mapping[str, str]) -> bool:
    value = known.get(as_text(requirement.get("key"), "key"))
    return holds(requirement.get("operator"), value, texts(requirement.get("values"), "values"))


def _covers(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint.get("key"))
    same = toleration.get("value") or "", taint.get("value") or ""
    return key == taint.get("key") and same[0] == same[1]


def _compared(value: str | None, bounds: tuple[str, ...]) -> int:
    """Compare as Kubernetes does, whole numbers of 64 bits only; 0 (neither) where one is none."""
    left = _whole(value or "")
    right = _whole(bounds[0] if len(bounds) == 1 else "")
    return left - right if left is not None and right is not None else 0


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
