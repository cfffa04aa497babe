"""What would become of one pod, with everything a person or a pipeline may ask about it."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch

from gpufence.annotations import read_pod_options
from gpufence.pods import read_pod
from gpufence.quantity import write_mebibytes
from gpufence.shape import as_object, objects
from webhook.command.documents import unseen_text
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite
from webhook.rewrite.containers import read_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpufence.mode import Mode
    from gpufence.plan import ContainerPlan, Setting
    from webhook.command.documents import Document, PodManifest
    from webhook.command.templates import Manifest
    from webhook.fleet import Fleet
    from webhook.policy import WebhookPolicy
    from webhook.rewrite.patch import Operation

_FIELD = "metadata.annotations['"
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Result:
    """One pod's fate: the decision, and the pod as it would be stored."""

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
        """The values that each container would see on that card, by container and variable."""
        annotations = (self.pod.get("metadata") or {}).get("annotations") or {}
        return {item["name"]: _resolved(item, annotations) for item in _all_containers(self.pod)}

    @property
    def runs(self) -> dict[str, dict[str, object]]:
        """What each container runs, and the settings that are set and heard by it."""
        pod = read_pod(self.found.pod)
        options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
        planned = self.outcome.plan.containers if isinstance(self.outcome, Rewrite) else {}
        found: dict[str, dict[str, object]] = {}
        for item in _all_containers(self.found.pod):
            launch = read_start(item, options, self.found.pod)
            engine = launch.engine if launch is not None else None
            found[str(item["name"])] = {
                "runs": engine.name if engine is not None else None,
                "reads": list(planned[item["name"]].reads) if item["name"] in planned else [],
            }
        return found

    @property
    def warnings(self) -> list[str]:
        said = () if isinstance(self.outcome, Refusal) else self.outcome.warnings
        return [*said, *filter(None, [self.found.remark])]

    def _plan(self, said: Rewrite) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads(said.written_plan)
        runs = self.runs
        for name, container in plan["containers"].items():
            container.update(runs[name])
        return plan

    def as_json(self) -> dict[str, Any]:
        outcome = self.outcome
        rewritten = outcome if isinstance(outcome, Rewrite) else None
        return {
            "kind": self.found.kind,
            "name": self.found.name,
            "path": self.found.path,
            "containers": self.runs,
            "plan": self._plan(rewritten) if rewritten else None,
            "summary": rewritten.summary if rewritten else None,
            "operations": self.operations,
            "warnings": self.warnings,
            "refusal": outcome.message if isinstance(outcome, Refusal) else None,
            "environment": self.environment,
        }


def unseen_json(document: Document) -> dict[str, Any]:
    """Return the same of an object whose pods cannot be seen."""
    metadata = as_object(document.manifest.get("metadata"), "metadata")
    return {
        "kind": document.manifest["kind"],
        "name": str(metadata.get("name", "")),
        "path": "",
        "containers": {},
        "plan": None,
        "summary": None,
        "operations": [],
        "warnings": [unseen_text(document)],
        "refusal": None,
        "environment": {},
    }


def result_for(
    found: PodManifest,
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
) -> Result:
    """Ask the webhook's own code what becomes of a pod, and apply what it says."""
    as_object(found.pod.get("metadata"), "metadata")
    containers = as_object(found.pod.get("spec"), "spec").get("containers")
    objects(containers, "spec.containers")
    outcome = rewrite(_copied(found.pod), mode, namespace, fleet, policy)
    pod = _copied(found.pod)
    if isinstance(outcome, Rewrite):
        pod = jsonpatch.apply_patch(pod, _plain(outcome.operations))
    return Result(found, outcome, pod)


def _all_containers(pod: Manifest) -> list[Manifest]:
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _copied(item: Any) -> Any:  # noqa: ANN401 - JSON, level by level
    """Copy a manifest so that no two parts of it are one, as they may be by YAML's aliases."""
    if isinstance(item, dict):
        return {key: _copied(value) for key, value in item.items()}
    return [_copied(value) for value in item] if isinstance(item, list) else item


def _plain(operations: Sequence[Operation]) -> list[dict[str, object]]:
    """Return operations as they travel: as JSON, and nobody else's objects."""
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


def explain(result: Result, mode: Mode) -> str:
    """Return in words what would happen to one pod, and why."""
    remarks = _wrapped(f"note: {result.found.remark}", "  ") if result.found.remark else ()
    return "\n".join([f"{result.found.title}, mode {mode}", *_lines(result), *remarks]) + "\n"


def _lines(result: Result) -> Iterator[str]:
    outcome = result.outcome
    if isinstance(outcome, Refusal):
        yield from _wrapped(f"REFUSED: {outcome.message}", "  ")
        return
    if isinstance(outcome, Unchanged):
        yield from _wrapped(f"stays as it is: {outcome.reason}", "  ")
    else:
        yield from _wrapped(outcome.summary, "  ")
        yield from _containers(result, outcome)
        yield from _rest(result)
    for warning in outcome.warnings:
        yield from _wrapped(f"warning: {warning}", "  ")


def _containers(result: Result, outcome: Rewrite) -> Iterator[str]:
    environment = result.environment
    for name, plan in outcome.plan.containers.items():
        runs = f" runs {plan.runs}" if plan.runs else ""
        yield f"  container {name}{runs}: {_figures(plan)}"
        rows = [_row(item, environment.get(name, {})) for item in plan.settings]
        width = max((len(row[0]) for row in rows), default=0)
        known = max((len(row[1]) for row in rows), default=0)
        for env, value, done in rows:
            yield f"    {env:{width}}  {value:{known}}  {done}".rstrip()


def _figures(plan: ContainerPlan) -> str:
    limit = "unknown" if plan.limit_bytes is None else write_mebibytes(plan.limit_bytes)
    verb = "may allocate" if plan.kept else "its variables say"
    cap = "" if plan.cap_bytes is None else f", {verb} {write_mebibytes(plan.cap_bytes)}"
    each = f" in each of {plan.processes} processes" if plan.processes > 1 and cap else ""
    return f"limit {limit}{cap}{each}"


def _row(setting: Setting, environment: dict[str, str]) -> tuple[str, str, str]:
    user = "" if setting.user is None else f' (was "{setting.user}")'
    return setting.env, environment.get(setting.env, "-") or '""', f"{setting.done}{user}"


def _rest(result: Result) -> Iterator[str]:
    """Name what else changes: scheduler, tolerations, volumes, arguments."""
    for operation in result.operations:
        path = str(operation["path"])
        if path.startswith("/spec") and "/env" not in path:
            yield f"  {operation['op']} {path}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False
    )
