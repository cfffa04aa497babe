"""
PURE. The operations that point a container's variables at their slots.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.shape import as_list
from webhook.operations import Shared
from webhook.rewrite.containers import SETTABLE, Seen, slot_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.frameworks.ask import Injection
    from webhook.operations import Patch, Path


def set_environment(patch: Patch, seen: Seen, injection: Injection) -> None:
    """
    Make every variable of the injection read its slot, and leave none of them twice in the list.

    Variables that an earlier pass set and this one does not get the user's own text back, or go.
    """
    path = (*seen.path, "env")
    fresh = injection.slots
    if seen.positions:
        wanted = frozenset(env for env, _ in injection.slots)
        gone = {env for env, user in injection.restored if user is None}
        at = _without_doubles(patch, path, seen.positions, wanted, gone)
        for env, text in injection.restored:
            if text is not None:
                _restore(patch, (*path, at[env]), text)
        for env, slot in injection.slots:
            if env in at:
                _point(patch, (*path, at[env]), slot)
        fresh = tuple(item for item in fresh if item[0] not in at)
    patch.extend(path, _entries(fresh))


def append_argument(patch: Patch, seen: Seen, argument: str) -> None:
    """
    Append a server's flag, unless an earlier pass has.
    """
    if argument not in as_list(seen.item.get("args"), "args"):
        patch.append((*seen.path, "args"), argument)


@lru_cache(maxsize=1024)
def source_of(slot: str) -> Shared:
    """
    Return where the kubelet finds a slot's value when it starts the container.
    """
    path = f"metadata.annotations['{names.ENV_PREFIX}{slot}']"
    return Shared(fieldRef={"fieldPath": path})


@lru_cache(maxsize=1024)
def _entries(slots: tuple[tuple[str, str], ...]) -> tuple[Shared, ...]:
    return tuple(Shared(name=env, valueFrom=source_of(slot)) for env, slot in slots)


def _point(patch: Patch, path: Path, slot: str) -> None:
    entry = patch.look(path)
    if slot_of(entry) == slot:
        return
    if "value" in entry:
        patch.remove(path, "value")
    patch.update(path, {"valueFrom": source_of(slot)})


def _restore(patch: Patch, path: Path, text: str) -> None:
    patch.remove(path, "valueFrom")
    patch.update(path, {"value": text})


def _without_doubles(
    patch: Patch,
    path: Path,
    positions: Mapping[str, list[int]],
    wanted: frozenset[str],
    gone: set[str],
) -> dict[str, int]:
    """
    Remove what stands twice, of which the last counts, and what has to go; return who stands where.
    """
    removed = sorted(
        position
        for env, found in positions.items()
        if env in SETTABLE
        for position in (found if env in gone else found[:-1] if env in wanted else ())
    )
    for position in reversed(removed):
        patch.remove(path, position)
    return {
        env: found[-1] - sum(1 for position in removed if position < found[-1])
        for env, found in positions.items()
        if env not in gone
    }
