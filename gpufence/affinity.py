"""
Which nodes a pod allows, by the rules of nodeSelector and required node affinity.

Taints are left out on purpose: ignoring them only adds candidates, and every value before binding
is the smallest over all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.shape import Object, as_list, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.pods import Pod

_MOST_DIGITS = 63
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def allows(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """
    Tell whether a pod may run on the node of this name and these labels.
    """
    if pod.node_name:
        return pod.node_name == name
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    terms = required_terms(pod)
    return terms is None or any(_matches(term, name, labels) for term in terms)


def required_terms(pod: Pod) -> list[Object] | None:
    """
    Return the terms of which a node must match one; None where the pod requires nothing.
    """
    required = pod.affinity.get(_REQUIRED)
    if required is None:
        return None
    return objects(as_object(required, _REQUIRED).get("nodeSelectorTerms"), _REQUIRED)


def holds(requirement: Object, labels: Mapping[str, str]) -> bool:
    """
    Tell whether one requirement holds for a node of these labels.
    """
    key = as_text(requirement.get("key"), "key")
    values = [as_text(item, "values") for item in as_list(requirement.get("values"), "values")]
    value = labels.get(key)
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compared(value, values) > 0
        case "Lt":
            return _compared(value, values) < 0
        case _:
            return False


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """
    Tell whether every requirement of a term holds; an empty term matches no node.
    """
    by_label = objects(term.get("matchExpressions"), "matchExpressions")
    by_field = objects(term.get("matchFields"), "matchFields")
    fields = {"metadata.name": name}
    return bool(by_label or by_field) and (
        all(holds(item, labels) for item in by_label)
        and all(holds(item, fields) for item in by_field)
    )


def _compared(value: str | None, bounds: list[str]) -> int:
    """
    Compare as Kubernetes does, whole numbers of 64 bits only; 0 (neither) where one is none.
    """
    left = _whole(value or "")
    right = _whole(bounds[0] if len(bounds) == 1 else "")
    return left - right if left is not None and right is not None else 0


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
