"""What the controller says of an owner: whether it was released, will be, or is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.owners import topmost
from gpufence.shape import as_object, as_text, objects, read_versioned
from kubectl_gpufence.agents import silence_reason

if TYPE_CHECKING:
    from gpufence.shape import Object
    from kubectl_gpufence.reader import ClusterReader

_PAGE: Final = "/v1/owners"
RELEASED: Final = "released"


class OwnerFate(NamedTuple):
    """The controller's word for an owner with a sentence, or why it is not known; or nothing."""

    state: str = ""
    sentence: str = ""
    note: str = ""


def fate_of(reader: ClusterReader, namespace: str, owner: str) -> OwnerFate:
    """Ask what becomes of an owner, `Kind/name`, whose GPUs are idle."""
    pages, missing = reader.controller_pages(_PAGE)
    try:
        known = [_read(page) for page in pages]
    except GpufenceError as error:
        return OwnerFate(
            note=f"whether {owner} is released is not known: {silence_reason(error, reader.home())}"
        )
    if not known:
        hidden = missing.startswith("you may not")
        note = f"whether {owner} is released was not asked: {missing}" if hidden else ""
        return OwnerFate(note=note)
    first = max(known, key=lambda page: (page.get("leader") is True, str(page.get("at"))))
    for item in objects(first.get("owners"), "owners"):
        named = f"{_text(item, 'kind')}/{_text(item, 'name')}"
        if (namespace, topmost(owner)) == (_text(item, "namespace"), named):
            sentence = _sentence(item, f"{namespace} {named.lower()}", _text(first, "brake"))
            return OwnerFate(_text(item, "state"), sentence)
    return OwnerFate()


def _read(page: str | GpufenceError) -> Object:
    if isinstance(page, GpufenceError):
        raise page
    return as_object(read_versioned(page, _PAGE, 1), _PAGE)


def _sentence(item: Object, owner: str, brake: str) -> str:
    state, why, deadline = (_text(item, key) for key in ("state", "why", "deadline"))
    if state == RELEASED:
        return f"Its owner was released: `kubectl gpufence wake -n {owner}` brings it back."
    if state not in {"kept", "idle"}:
        return ""
    if brake:
        return f"No owner is released at the moment: {brake}."
    if state == "idle" and deadline and _text(item, "rung") == "release":
        keep = f"`kubectl gpufence keep -n {owner} --for 8h` prevents that"
        return f"Its owner is released (scaled to zero) at {deadline} if it stays idle: {keep}."
    return f"Its owner is not released: {why}."


def _text(item: Object, key: str) -> str:
    return as_text(item.get(key) or "", key)
