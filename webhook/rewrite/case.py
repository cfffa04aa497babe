"""
PURE. One pod to decide about, with all that the decision depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.wishes import read_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.candidates import Choice
    from gpufence.mode import Mode
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from gpufence.wishes import NamespaceWords, Wishes
    from webhook.policy import Policy

NAMESPACE_KEYS = (names.MAX_MEMORY, names.IMPLIED_LIMITS)
"""The words of a namespace that count for its pods without being copied onto them."""

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Case:
    """
    A pod as it came (`manifest`) and as it was read, where it may run, and who decides.

    `node` is known only at binding, or where the pod names its node itself.
    """

    manifest: Object
    pod: Pod
    wishes: Wishes
    namespace: Mapping[str, str]
    mode: Mode
    policy: Policy
    choices: tuple[Choice, ...]
    node: GpuNode | None = None

    @property
    def words(self) -> NamespaceWords:
        return read_namespace(self.namespace)


def kept_words(namespace: Mapping[str, str]) -> Mapping[str, str]:
    """
    Return the namespace's words that the plan has to keep for whoever reckons again.
    """
    if not namespace:
        return _NOTHING
    return {key: namespace[key] for key in NAMESPACE_KEYS if key in namespace}
