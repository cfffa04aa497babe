"""
What would become of one pod, with everything a person or a pipeline may ask about it.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch

from gpufence.plan import write_plan
from gpufence.shape import as_object, objects
from webhook.rewrite import Refusal, Rewrite, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.mode import Mode
    from webhook.command.documents import Manifest, PodManifest
    from webhook.fleet import Fleet
    from webhook.operations import Operation
    from webhook.policy import WebhookPolicy
    from webhook.rewrite import Unchanged

_FIELD = "metadata.annotations['"


@dataclass(frozen=True, slots=True)
class Result:
    """
    One pod's fate: the decision, and the pod as it would be stored.
    """

    found: PodManifest
    outcome: Rewrite | Unchanged | Refusal
    pod: Manifest

    @property
    def refused(self) -> bool:
        return isinstance(self.outcome, Refusal)

    @property
    def operations(self) -> list[dict[str, object]]:
        return _plain(self.outcome.operations) if isinstance(self.outcome, Rewrite) else []

    @property
    def environment(self) -> dict[str, dict[str, str]]:
        """
        The values that each container would see on that card, by container and variable.
        """
        annotations = (self.pod.get("metadata") or {}).get("annotations") or {}
        spec = self.pod.get("spec") or {}
        containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
        return {item["name"]: _resolved(item, annotations) for item in containers}

    def as_json(self) -> dict[str, Any]:
        outcome = self.outcome
        rewritten = outcome if isinstance(outcome, Rewrite) else None
        return {
            "kind": self.found.kind,
            "name": self.found.name,
            "plan": json.loads(write_plan(rewritten.plan)) if rewritten else None,
            "summary": rewritten.summary if rewritten else None,
            "operations": self.operations,
            "warnings": [] if isinstance(outcome, Refusal) else list(outcome.warnings),
            "refusal": outcome.message if isinstance(outcome, Refusal) else None,
            "environment": self.environment,
        }


def result_for(
    found: PodManifest,
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
) -> Result:
    """
    Ask the webhook's own code what becomes of a pod, and apply what it says.
    """
    as_object(found.pod.get("metadata"), "metadata")
    containers = as_object(found.pod.get("spec"), "spec").get("containers")
    objects(containers, "spec.containers")
    outcome = rewrite(found.pod, mode, namespace, fleet, policy)
    pod = copy.deepcopy(found.pod)
    if isinstance(outcome, Rewrite):
        pod = jsonpatch.apply_patch(pod, _plain(outcome.operations))
    return Result(found, outcome, pod)


def _plain(operations: Sequence[Operation]) -> list[dict[str, object]]:
    """
    Return operations as they travel: as JSON, and nobody else's objects.
    """
    plain: list[dict[str, object]] = json.loads(json.dumps(operations))
    return plain


def _resolved(container: Manifest, annotations: Mapping[str, str]) -> dict[str, str]:
    """
    Resolve literal values and annotations, which is all that is known before a kubelet runs it.
    """
    seen: dict[str, str] = {}
    for item in container.get("env") or []:
        path = ((item.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        if path.startswith(_FIELD):
            seen[item["name"]] = annotations.get(path.removeprefix(_FIELD).removesuffix("']"), "")
        elif "valueFrom" not in item:
            seen[item["name"]] = str(item.get("value", ""))
    return seen
