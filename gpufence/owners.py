"""The topmost owners of pods, by what pods and their controllers are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

POD_TEMPLATE_HASH: Final = "pod-template-hash"
"""The label by which the Deployment controller ends the names of its ReplicaSets."""

_HASH: Final = re.compile("[4-9bcdf]{4,10}")
"""What Kubernetes makes of the digits of such a hash."""

_SCHEDULED = re.compile(r"(.*[a-z0-9])-((?:2[6-9]|[3-5]\d)\d{6})", re.ASCII)
"""
A CronJob names a Job after the minute it was due: these are those from 2019 to 2084, and no date.
"""


def top_owner(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """
    Return kind and name of the topmost owner of a controller's pods, by their labels.

    A ReplicaSet is another after each roll-out and a Job another at each run of a CronJob; what
    their pods need is remembered under the name that stays, where that is certain.
    """
    if kind == "ReplicaSet":
        suffix = f"-{labels.get(POD_TEMPLATE_HASH, '')}"
        deployment = name.removesuffix(suffix)
        if suffix != "-" and deployment not in ("", name):
            return "Deployment", deployment
    if kind == "Job" and (scheduled := _SCHEDULED.fullmatch(name)):
        return "CronJob", scheduled[1]
    return kind, name


def topmost(owner: str) -> str:
    """Return the same of a controller as `Kind/name`, whose pods' labels are not at hand."""
    kind, _, name = owner.partition("/")
    last = name.rpartition("-")[2]
    labels = {POD_TEMPLATE_HASH: last} if _HASH.fullmatch(last) else {}
    return "/".join(top_owner(kind, name, labels))
