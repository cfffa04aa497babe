"""
PURE. Mounting the start-up hook: its source travels in an annotation, so that it needs no image.

A downwardAPI volume shows the annotation as a file; mounted by subPath, it cannot change under a
running pod. The folder is put in front of PYTHONPATH, and Python imports the file by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.shape import as_object, as_text, objects
from webhook.operations import Shared

if TYPE_CHECKING:
    from gpufence.shape import Object
    from webhook.operations import Patch
    from webhook.rewrite.containers import Seen

MOUNT_PATH = f"{names.HOOK_FOLDER}/{names.HOOK_FILE}"
VOLUME = Shared(
    name=names.HOOK_VOLUME,
    downwardAPI={
        "items": [
            {
                "path": names.HOOK_FILE,
                "fieldRef": {"fieldPath": f"metadata.annotations['{names.SITECUSTOMIZE}']"},
            }
        ]
    },
)
MOUNT = Shared(name=names.HOOK_VOLUME, mountPath=MOUNT_PATH, subPath=names.HOOK_FILE, readOnly=True)

_ALONE = Shared(name=names.PYTHON_PATH, value=names.HOOK_FOLDER)
_BESIDE_ENV_FROM = Shared(
    name=names.PYTHON_PATH, value=f"{names.HOOK_FOLDER}:$({names.PYTHON_PATH})"
)

NO_SOURCE = "this gpufence was started without a start-up hook to mount"
_VOLUME_TAKEN = f"the pod has a volume {names.HOOK_VOLUME} of its own, so no start-up hook"
_PATH_TAKEN = f"something is mounted at {names.HOOK_FOLDER} already, so no start-up hook"
_PATH_HIDDEN = f"{names.PYTHON_PATH} comes from elsewhere (valueFrom), so no start-up hook"


def obstacle(manifest: Object, seen: Seen) -> str:
    """
    Say why the hook cannot be mounted into a container; empty where it can.
    """
    volume = _volume(manifest)
    if volume is not None and not _is_ours(volume):
        return _VOLUME_TAKEN
    mounts = objects(seen.item.get("volumeMounts"), "volumeMounts")
    own = [as_text(item.get("mountPath"), "mountPath") for item in mounts if not _is_mount(item)]
    if any(path.rstrip("/") in (names.HOOK_FOLDER, MOUNT_PATH) for path in own):
        return _PATH_TAKEN
    hidden = any(word.hidden for word in seen.look.words if word.env == names.PYTHON_PATH)
    entry = _python_path(seen)
    return _PATH_HIDDEN if hidden and entry is not None and entry.get("valueFrom") else ""


def mount(patch: Patch, seen: Seen) -> None:
    """
    Mount the hook into a container, or do nothing where an earlier pass has.
    """
    if _volume(patch.document) is None:
        patch.extend(("spec", "volumes"), [VOLUME])
    mounts = objects(seen.item.get("volumeMounts"), "volumeMounts")
    if not any(_is_mount(item) for item in mounts):
        patch.extend((*seen.path, "volumeMounts"), [MOUNT])
    _put_first(patch, seen)


def _put_first(patch: Patch, seen: Seen) -> None:
    """
    Put the hook's folder in front of what Python searches, the user's own value behind it.

    What envFrom may bring stays in force: the kubelet expands it, or leaves a path to nowhere.
    """
    entries = objects(as_object(patch.look(seen.path), "container").get("env"), "env")
    found = [at for at, entry in enumerate(entries) if entry.get("name") == names.PYTHON_PATH]
    if not found:
        entry = _BESIDE_ENV_FROM if seen.look.env_from else _ALONE
        patch.extend((*seen.path, "env"), [entry])
        return
    said = as_text(entries[found[-1]].get("value"), names.PYTHON_PATH)
    rest = [part for part in said.split(":") if part != names.HOOK_FOLDER]
    value = ":".join([names.HOOK_FOLDER, *rest]) if said else names.HOOK_FOLDER
    if value != said:
        patch.update((*seen.path, "env", found[-1]), {"value": value})


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


def _python_path(seen: Seen) -> Object | None:
    positions = seen.positions.get(names.PYTHON_PATH)
    if not positions:
        return None
    return objects(seen.item.get("env"), "env")[positions[-1]]
