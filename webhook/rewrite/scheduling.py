"""
PURE. Who schedules a pod and which taints it bears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import Dialect
from gpufence.quantity import read_count
from gpufence.shape import as_object, objects
from webhook.policy import CARD_TAINT, Policy, Toleration

if TYPE_CHECKING:
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.operations import Patch


def schedule(patch: Patch, pod: Pod, dialect: Dialect, policy: Policy) -> None:
    """
    Name the dialect's scheduler where the pod leaves it to the default, and tolerate what GPU nodes
    are tainted with.
    """
    spec = as_object(patch.document.get("spec"), "spec")
    name = policy.scheduler_names.get(dialect)
    if name and spec.get("schedulerName") in (None, "", names.DEFAULT_SCHEDULER, name):
        patch.update(
            ("spec",), {} if spec.get("schedulerName") == name else {"schedulerName": name}
        )
    said = objects(spec.get("tolerations"), "spec.tolerations")
    wanted = (*_card_taint(pod, dialect), *policy.tolerations)
    missing = [item for item in wanted if not any(_covers(one, item) for one in said)]
    patch.extend(("spec", "tolerations"), [_write(item) for item in missing])


def _card_taint(pod: Pod, dialect: Dialect) -> tuple[Toleration, ...]:
    """
    Return the taint of GPU nodes for pods that Kubernetes itself does not let tolerate it.
    """
    if dialect is Dialect.ANNOTATION:
        return ()
    asked = (item.limits.get(names.NVIDIA_GPU, "0") for item in pod.containers)
    return () if any(read_count(count, names.NVIDIA_GPU) for count in asked) else (CARD_TAINT,)


def _covers(said: Object, wanted: Toleration) -> bool:
    """
    Tell whether a toleration of the pod's own bears the taint already.
    """
    key, effect = said.get("key") or "", said.get("effect") or ""
    if effect not in ("", wanted.effect):
        return False
    if said.get("operator") == "Exists":
        return key in ("", wanted.key)
    return bool(wanted.value) and key == wanted.key and said.get("value") == wanted.value


def _write(wanted: Toleration) -> Object:
    said: dict[str, object] = {"key": wanted.key, "operator": "Exists"}
    if wanted.value:
        said |= {"operator": "Equal", "value": wanted.value}
    if wanted.effect:
        said["effect"] = wanted.effect
    return said
