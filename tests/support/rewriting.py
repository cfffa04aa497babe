"""The webhook's decisions in one call, the reviews before and what they look like afterwards."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonpatch

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.need.applied import AppliedProfile
from gpufence.nodes import GpuNode, read_node
from gpufence.plan import Done, read_plan, write_amounts
from gpufence.quantity import MIB
from webhook.fleet import Fleet
from webhook.frameworks.figures import container_figures
from webhook.frameworks.table import blank_settings
from webhook.policy import WebhookPolicy
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite
from webhook.rewrite.injection import own_settings

T4 = CandidateCard(Units(), 15360 * MIB, (7, 5))
POLICY = WebhookPolicy(default=T4, hook_source="pass\n")
NO_FLEET = Fleet(())
NO_CARD = replace(POLICY, default=CandidateCard(Units(), None))


def forget() -> None:
    """Let the webhook forget the sums and texts that it has made for earlier pods."""
    for remembered in (blank_settings, own_settings, container_figures, write_amounts):
        remembered.cache_clear()


def gpu_node(manifest: dict[str, Any]) -> GpuNode:
    found = read_node(manifest, Units())
    assert found is not None
    return found


def decide(
    pod: dict[str, Any],
    mode: Mode = Mode.CAP,
    namespace: Mapping[str, str] | None = None,
    fleet: Fleet | None = None,
    policy: WebhookPolicy = POLICY,
    profile: AppliedProfile | None = None,
) -> Rewrite | Unchanged | Refusal:
    return rewrite(copy.deepcopy(pod), mode, namespace or {}, fleet or Fleet(()), policy, profile)


def rewritten(
    pod: dict[str, Any],
    mode: Mode = Mode.CAP,
    namespace: Mapping[str, str] | None = None,
    fleet: Fleet | None = None,
    policy: WebhookPolicy = POLICY,
    profile: AppliedProfile | None = None,
) -> tuple[dict[str, Any], Rewrite]:
    """Return the pod as the API server would have it, with what led there."""
    said = decide(pod, mode, namespace, fleet, policy, profile)
    assert isinstance(said, Rewrite), said
    return applied(pod, said), said


def rewritten_with_claims(
    pod: dict[str, Any],
    claims: Mapping[str, Any],
    mode: Mode = Mode.CAP,
    fleet: Fleet = NO_FLEET,
    policy: WebhookPolicy = POLICY,
) -> dict[str, Any]:
    """Return a pod with resource claims as the API server would have it."""
    said = rewrite(copy.deepcopy(pod), mode, {}, fleet, policy, claims=claims)
    assert isinstance(said, Rewrite), said
    return applied(pod, said)


def applied(pod: dict[str, Any], said: Rewrite) -> dict[str, Any]:
    patch = json.loads(json.dumps(said.operations))
    result: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
    return result


def environment(pod: dict[str, Any], name: str = "main") -> dict[str, str | None]:
    """Return what a container sees: literal values and slots; None for what cannot be told here."""
    spec = pod["spec"]
    found = [*spec.get("initContainers", []), *spec["containers"]]
    item = next(item for item in found if item["name"] == name)
    return {
        entry["name"]: _value(entry, pod["metadata"].get("annotations") or {})
        for entry in item.get("env", [])
    }


def absent(bound: dict[str, Any]) -> list[str]:
    """Name the settings that a plan calls told and that are not in the pod."""
    annotations = bound["metadata"]["annotations"]
    item = bound["spec"]["containers"][0]
    env = {entry["name"]: entry for entry in item.get("env", [])}
    plan = read_plan(annotations[names.PLAN]).containers.get("main")
    missing = []
    for row in plan.settings if plan is not None else ():
        path = f"metadata.annotations['{names.ENV_PREFIX}{row.slot}']"
        pointed = {"name": row.env, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        literal = {"name": row.env, "value": row.user or ""}
        if row.done in (Done.SET, Done.LOWERED, Done.KEPT):
            missing += [] if env.get(row.env) in (pointed, literal) else [row.env]
    text = " ".join([*item.get("command", []), *item.get("args", [])])
    heard = [each for each in (plan.reads if plan is not None else ()) if each.startswith("-")]
    return missing + [flag for flag in heard if flag not in text]


def with_old_slots(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as earlier versions left it, with slots numbered from s0 on."""
    text = json.dumps(pod)
    keys = [key for key in pod["metadata"]["annotations"] if key.startswith(names.ENV_PREFIX)]
    for at, key in enumerate(keys):
        text = text.replace(f'"{key}"', f'"{names.ENV_PREFIX}s{at}"')
        text = text.replace(f"'{key}'", f"'{names.ENV_PREFIX}s{at}'")
        slot = key.removeprefix(names.ENV_PREFIX)
        text = text.replace(rf"\"slot\":\"{slot}\"", rf"\"slot\":\"s{at}\"")
    old: dict[str, Any] = json.loads(text)
    return old


def variables(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": text} for name, text in values.items()]


def annotation(pod: dict[str, Any], key: str) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(key)
    return found


def _value(entry: dict[str, Any], annotations: dict[str, str]) -> str | None:
    if "valueFrom" not in entry:
        return str(entry.get("value", ""))
    path = entry["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
    key = path.removeprefix("metadata.annotations['").removesuffix("']")
    return annotations.get(key, "") if key.startswith(names.ENV_PREFIX) else None


def pod(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", **metadata},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


def review(**request: Any) -> dict[str, Any]:
    """Make a review of a pod's creation; None leaves a field of the request out."""
    usual = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": pod(),
        "oldObject": None,
        "dryRun": False,
    }
    said = {key: value for key, value in (usual | request).items() if value is not None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": said}


def binding(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "trainer", "namespace": "team-a", "uid": "pod-uid", **metadata},
        "target": {"kind": "Node", "name": "node-t4"},
    }


def binding_review(item: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    usual = {
        "kind": {"group": "", "version": "v1", "kind": "Binding"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "binding",
        "name": "trainer",
        "object": item or binding(),
    }
    return review(**(usual | request))


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
