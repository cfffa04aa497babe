"""
PURE. Mounting the start-up hook: its source travels in an annotation, so that it needs no image.

A downwardAPI volume shows the annotation as a file; mounted by subPath, it cannot change under a
running pod. The folder is put in front of PYTHONPATH, and Python imports the file by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from gpufence.shape import as_object, as_text, objects

if TYPE_CHECKING:
    from gpufence.shape import Object
    from webhook.operations import Patch
    from webhook.rewrite.containers import GpuContainer

MOUNT_PATH = f"{names.HOOK_FOLDER}/{names.HOOK_FILE}"
VOLUME = {
    "name": names.HOOK_VOLUME,
    "downwardAPI": {
        "items": [
            {
                "path": names.HOOK_FILE,
                "fieldRef": {"fieldPath": f"metadata.annotations['{names.SITECUSTOMIZE}']"},
            }
        ]
    },
}
MOUNT = {
    "name": names.HOOK_VOLUME,
    "mountPath": MOUNT_PATH,
    "subPath": names.HOOK_FILE,
    "readOnly": True,
}

_BESIDE_ENV_FROM = f"{names.HOOK_FOLDER}:$({names.PYTHON_PATH})"

NO_SOURCE = "this gpufence was started without a start-up hook to mount"
_VOLUME_TAKEN = f"the pod has a volume {names.HOOK_VOLUME} of its own, so no start-up hook"
_PATH_TAKEN = f"something is mounted at {names.HOOK_FOLDER} already, so no start-up hook"
_PATH_HIDDEN = f"{names.PYTHON_PATH} comes from elsewhere (valueFrom), so no start-up hook"


class HookMount(NamedTuple):
    """
    The hook is to be mounted into a container.
    """

    source: str


class HookObstacle(NamedTuple):
    """
    Why it cannot be.
    """

    reason: str


HookPlan: TypeAlias = HookMount | HookObstacle | None
"""What becomes of the hook in one container; None where nobody asked for it."""


def plan_hook(manifest: Object, container: GpuContainer, source: str) -> HookMount | HookObstacle:
    """
    Decide whether the hook can be mounted into a container.
    """
    if not source:
        return HookObstacle(NO_SOURCE)
    volume = _volume(manifest)
    if volume is not None and not _is_ours(volume):
        return HookObstacle(_VOLUME_TAKEN)
    mounts = objects(container.manifest.get("volumeMounts"), "volumeMounts")
    own = [as_text(item.get("mountPath"), "mountPath") for item in mounts if not _is_mount(item)]
    if any(path.rstrip("/") in (names.HOOK_FOLDER, MOUNT_PATH) for path in own):
        return HookObstacle(_PATH_TAKEN)
    if _python_path(container).get("valueFrom"):
        return HookObstacle(_PATH_HIDDEN)
    return HookMount(source)


def mount_hook(patch: Patch, container: GpuContainer) -> None:
    """
    Mount the hook into a container, or do nothing where an earlier pass has.
    """
    if _volume(patch.document) is None:
        patch.extend(("spec", "volumes"), [VOLUME])
    mounts = objects(container.manifest.get("volumeMounts"), "volumeMounts")
    if not any(_is_mount(item) for item in mounts):
        patch.extend((*container.path, "volumeMounts"), [MOUNT])
    _put_first(patch, container)


def _put_first(patch: Patch, container: GpuContainer) -> None:
    """
    Put the hook's folder in front of what Python searches, the user's own value behind it.

    What envFrom may bring stays in force: the kubelet expands it, or leaves a path to nowhere.
    """
    entries = objects(as_object(patch.at(container.path), "container").get("env"), "env")
    positions = [at for at, entry in enumerate(entries) if entry.get("name") == names.PYTHON_PATH]
    if not positions:
        value = _BESIDE_ENV_FROM if container.text.env_from else names.HOOK_FOLDER
        patch.extend((*container.path, "env"), [{"name": names.PYTHON_PATH, "value": value}])
        return
    own = as_text(entries[positions[-1]].get("value"), names.PYTHON_PATH)
    rest = [part for part in own.split(":") if part != names.HOOK_FOLDER]
    value = ":".join([names.HOOK_FOLDER, *rest]) if own else names.HOOK_FOLDER
    if value != own:
        patch.update((*container.path, "env", positions[-1]), {"value": value})


def _volume(manifest: Object) -> Object | None:
    spec = as_object(manifest.get("spec"), "spec")
    volumes = objects(spec.get("volumes"), "spec.volumes")
    return next((item for item in volumes if item.get("name") == names.HOOK_VOLUME), None)


def _is_ours(volume: Object) -> bool:
    source = as_object(volume.get("downwardAPI"), "downwardAPI")
    items = objects(source.get("items"), "items")
    return [item.get("path") for item in items] == [names.HOOK_FILE]


def _is_mount(item: Object) -> bool:
    return item.get("name") == names.HOOK_VOLUME and item.get("mountPath") == MOUNT_PATH


def _python_path(container: GpuContainer) -> Object:
    """
    Return the entry of PYTHONPATH that counts, empty where there is none.
    """
    positions = container.positions.get(names.PYTHON_PATH)
    return objects(container.manifest.get("env"), "env")[positions[-1]] if positions else {}
