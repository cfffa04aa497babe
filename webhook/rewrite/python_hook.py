"""
PURE. Mounting the start-up hook: its source travels in an annotation, so that it needs no image.

A downwardAPI volume shows annotations as files; mounted by subPath, they cannot change under a
running pod. An interpreter comes by the source in one of two ways. By a `.pth` file with one line,
mounted into the site folders of the layouts that images have: that needs no variable and hides
nothing, and a folder that is not there costs an empty one. Or, as a named choice, by its folder in
front of PYTHONPATH, which hides a PYTHONPATH of the image's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from gpufence.annotations import HookCarrier
from gpufence.shape import as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.shape import Object
    from webhook.rewrite.containers import GpuContainer
    from webhook.rewrite.patch import Patch

MOUNT_PATH = f"{names.HOOK_FOLDER}/{names.HOOK_FILE}"
SITE_LINE = (
    f"import os; p = {MOUNT_PATH!r}; f = os.path.exists(p) and os.open(p, 0); "
    "f and exec(compile(os.read(f, 1 << 20), p, 'exec'), "
    "{'__name__': 'gpufence_site', '__file__': p}); f and os.close(f)\n"
)
"""What Python runs at start when it finds it in a site folder: the source, under a name of ours."""

_VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
_ROOTS = (
    "/usr/local/lib/python{}/site-packages",  # the python images
    "/usr/local/lib/python{}/dist-packages",  # Debian's and NVIDIA's, by pip
    "/opt/conda/lib/python{}/site-packages",
    "/opt/venv/lib/python{}/site-packages",
    "/app/.venv/lib/python{}/site-packages",
    "/usr/lib/python{}/site-packages",  # Red Hat's
)
SITE_FOLDERS = (
    "/usr/lib/python3/dist-packages",  # Debian's, of any version
    *(root.format(version) for root in _ROOTS for version in _VERSIONS),
)
_ABOVE = {
    folder: [folder[:at] for at, char in enumerate(f"{folder}/") if char == "/"]
    for folder in SITE_FOLDERS
}
"""Each folder with those that it is in."""


def _item(path: str, annotation: str) -> dict[str, object]:
    source = {"fieldPath": f"metadata.annotations['{annotation}']"}
    return {"path": path, "fieldRef": source}


_HOOK_ITEM = _item(names.HOOK_FILE, names.SITECUSTOMIZE)
VOLUMES = {
    HookCarrier.PATH: {"name": names.HOOK_VOLUME, "downwardAPI": {"items": [_HOOK_ITEM]}},
    HookCarrier.SITE: {
        "name": names.HOOK_VOLUME,
        "downwardAPI": {"items": [_HOOK_ITEM, _item(names.HOOK_SITE_FILE, names.SITE_LINE)]},
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
    """The hook is to be mounted into a container."""

    source: str
    carrier: HookCarrier


class HookObstacle(NamedTuple):
    """Why it cannot be."""

    reason: str


HookPlan: TypeAlias = HookMount | HookObstacle | None
"""What becomes of the hook in one container; None where nobody asked for it."""


def plan_hook(
    container: GpuContainer, source: str, carrier: HookCarrier, *, taken: bool
) -> HookMount | HookObstacle:
    """Decide whether the hook can be mounted into a container; `taken` where its volume is not."""
    if not source:
        return HookObstacle(NO_SOURCE)
    if taken:
        return HookObstacle(_VOLUME_TAKEN)
    mounts = objects(container.manifest.get("volumeMounts"), "volumeMounts")
    own = [as_text(item.get("mountPath"), "mountPath") for item in mounts if not _is_mount(item)]
    if any(path.rstrip("/") in (names.HOOK_FOLDER, MOUNT_PATH) for path in own):
        return HookObstacle(_PATH_TAKEN)
    if carrier is HookCarrier.PATH and _python_path(container).get("valueFrom"):
        return HookObstacle(_PATH_HIDDEN)
    return HookMount(source, carrier)


def hook_texts(mount: HookMount) -> dict[str, str]:
    """Return the annotations that the hook's files are made of."""
    texts = {names.SITECUSTOMIZE: mount.source}
    if mount.carrier is HookCarrier.SITE:
        texts[names.SITE_LINE] = SITE_LINE
    return texts


def bring_hook(patch: Patch, carrier: HookCarrier) -> None:
    """Give the pod the hook's volume, or do nothing where an earlier pass has."""
    if _volume(patch.document) is None:
        patch.extend(("spec", "volumes"), [VOLUMES[carrier]])


def mount_hook(patch: Patch, container: GpuContainer, carrier: HookCarrier) -> None:
    """Mount the hook into a container, or do nothing where an earlier pass has."""
    mounts = objects(container.manifest.get("volumeMounts"), "volumeMounts")
    paths = {as_text(item.get("mountPath"), "mountPath") for item in mounts}
    wanted = [MOUNT]
    if carrier is HookCarrier.SITE:
        wanted += _site_mounts(paths)
    missing = [item for item in wanted if item["mountPath"] not in paths]
    patch.extend((*container.path, "volumeMounts"), missing)
    if carrier is HookCarrier.PATH:
        _put_first(patch, container)


def _site_mounts(own: Iterable[str]) -> Iterator[dict[str, object]]:
    """
    Yield a mount for each site folder that is not within a mount of the container's own, where it
    would leave an empty folder in somebody's volume.
    """
    outer = {path.rstrip("/") for path in own if not path.endswith(".pth")}
    for folder in SITE_FOLDERS:
        if outer.isdisjoint(_ABOVE[folder]):
            path = f"{folder}/{names.HOOK_SITE_FILE}"
            yield MOUNT | {"mountPath": path, "subPath": names.HOOK_SITE_FILE}


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


def is_taken(manifest: Object) -> bool:
    """Return whether the name of the hook's volume is another's."""
    volume = _volume(manifest)
    return volume is not None and not _is_ours(volume)


def _volume(manifest: Object) -> Object | None:
    spec = as_object(manifest.get("spec"), "spec")
    volumes = objects(spec.get("volumes"), "spec.volumes")
    return next((item for item in volumes if item.get("name") == names.HOOK_VOLUME), None)


def _is_ours(volume: Object) -> bool:
    source = as_object(volume.get("downwardAPI"), "downwardAPI")
    items = objects(source.get("items"), "items")
    return any(item.get("path") == names.HOOK_FILE for item in items)


def _is_mount(item: Object) -> bool:
    return item.get("name") == names.HOOK_VOLUME


def _python_path(container: GpuContainer) -> Object:
    """Return the entry of PYTHONPATH that counts, empty where there is none."""
    positions = container.positions.get(names.PYTHON_PATH)
    return objects(container.manifest.get("env"), "env")[positions[-1]] if positions else {}
