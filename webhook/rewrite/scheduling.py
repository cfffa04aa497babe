"""
PURE. Who schedules a pod and which taints it bears.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.shape import as_object, objects
from webhook.operations import Shared
from webhook.policy import CARD_TAINT, Policy, Toleration

if TYPE_CHECKING:
    from gpufence.shape import Object
    from webhook.operations import Patch

_UNCHOSEN = (None, "", names.DEFAULT_SCHEDULER)


def schedule(patch: Patch, policy: Policy, dialect: str, *, card_taint: bool) -> None:
    """
    Name the dialect's scheduler where the pod leaves it to the default, and tolerate what the
    operator says, and what GPU nodes are tainted with.
    """
    spec = as_object(patch.document.get("spec"), "spec")
    name = policy.scheduler_names.get(dialect)
    if name and spec.get("schedulerName") in _UNCHOSEN:
        patch.update(("spec",), {"schedulerName": name})
    wanted = (CARD_TAINT, *policy.tolerations) if card_taint else policy.tolerations
    if wanted:
        said = objects(spec.get("tolerations"), "spec.tolerations")
        missing = [item for item in wanted if not any(_covers(one, item) for one in said)]
        patch.extend(("spec", "tolerations"), [_write(item) for item in missing])


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


@lru_cache(maxsize=256)
def _write(wanted: Toleration) -> Shared:
    said = Shared(key=wanted.key, operator="Equal" if wanted.value else "Exists")
    if wanted.value:
        said["value"] = wanted.value
    if wanted.effect:
        said["effect"] = wanted.effect
    return said
