"""
Containers that stand alone in a kind of an operator's, under whatever key, by their shape.

Their operator makes the pod: what it adds is not known here, only what stands in the object.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpufence import names
from gpufence.dialects import GPU_RESOURCES, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Manifest = dict[str, Any]

_LISTS = ("command", "args")
_VARIABLES = ("env", "envs")
_RESOURCES = ("resources", "resourcesPerNode")
_PARTS = ("limits", "requests")
_MAIN = "main"
_SCRIPT = "/script"  # where a `source` is put before it is started
_WORD = re.compile(r"(?:.+\.)?gpu(?:s|Type|Count|\.amount)?|nvidia-gpu-.+")
_MOST = 20_000  # keys and values of one object that are looked at


def lone_container(key: str, item: Manifest, around: Sequence[Manifest]) -> Manifest | None:
    """
    Return the container that an object stands for, None where it is none; `around` are the objects
    it stands in, the nearest first.
    """
    image = _image(item.get("image"))
    if not image:
        return None
    asked = [found for place in (item, *around[:2]) if (found := _resources(place))]
    resources = next(filter(_asks_gpu, asked), asked[0] if asked else {})
    started = {name: item[name] for name in _LISTS if _is_texts(item.get(name))}
    if item.get("source") and "command" in started:
        started["args"] = [_SCRIPT]
    if not (started or _asks_gpu(resources)):
        return None
    env = [each for place in (*reversed(around[:2]), item) for each in _variables(place)]
    name = str(item.get("name") or (_MAIN if key == "spec" else key))
    found = {"name": name, "image": image, **started, "resources": resources}
    return {**found, "env": env} if env else found


def beside(place: Manifest, container: Manifest) -> dict[str, list[Manifest]]:
    """Return all containers of the pod that an object around a lone container describes."""
    helpers = [each for each in _objects(place.get("sidecars")) if each.get("name")]
    early = [each for each in _objects(place.get("initContainers")) if each.get("name")]
    found = {"containers": [container, *helpers]}
    return {**found, "initContainers": early} if early else found


def names_gpu(manifest: Manifest) -> bool:
    """Return whether an object names a GPU, wherever in it and in whatever words."""
    waiting: list[object] = [each for key, each in manifest.items() if key != "metadata"]
    for _ in range(_MOST):
        if not waiting:
            return False
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str) and (_is_gpu(item) or _WORD.fullmatch(item)):
            return True
    return False


def _image(item: object) -> str:
    """Return an image's name, which some write in parts."""
    if not isinstance(item, dict):
        return item if isinstance(item, str) else ""
    last = item.get("repository") or item.get("name")
    if not isinstance(last, str):
        return ""
    registry, tag = item.get("registry"), item.get("tag")
    name = f"{registry}/{last}" if registry else last
    return f"{name}:{tag}" if tag else name


def _resources(place: Manifest) -> Manifest:
    """Return what an object asks for, in the words of a container."""
    asked = _first(place.get(key) for key in _RESOURCES)
    parts = {key: asked[key] for key in _PARTS if isinstance(asked.get(key), dict)}
    return {key: _amounts(part) for key, part in (parts or {"limits": asked}).items() if part}


def _amounts(part: Manifest) -> dict[str, str]:
    """Return amounts under Kubernetes' names: operators write a card as `gpu`, its kind beside."""
    kind = str(part.get("gpuType") or names.NVIDIA_GPU)
    return {
        kind if name == "gpu" else name: str(amount)
        for name, amount in part.items()
        if isinstance(amount, str | int) and name != "gpuType"
    }


def _asks_gpu(resources: Manifest) -> bool:
    return any(_is_gpu(name) for part in resources.values() for name in part)


def _is_gpu(resource: str) -> bool:
    return resource in GPU_RESOURCES or resource.startswith(PREFIXES)


def _variables(place: Manifest) -> list[Manifest]:
    """Return an object's variables, which charts write by name."""
    for found in map(place.get, _VARIABLES):
        if isinstance(found, list) and found:
            return [each for each in _objects(found) if each.get("name")]
        if isinstance(found, dict) and found:
            texts = {name: each for name, each in found.items() if isinstance(each, str | int)}
            return [{"name": name, "value": str(each)} for name, each in texts.items()]
    return []


def _first(items: Iterator[Any]) -> dict[str, Any]:
    return next((item for item in items if isinstance(item, dict) and item), {})


def _objects(items: object) -> list[Manifest]:
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []


def _is_texts(item: object) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(each, str) for each in item)
