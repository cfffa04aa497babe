"""
What a resource claim asks for of GPUs, until it is allocated: a lower bound, since the driver's
policy rounds up.

Memory is a capacity that devices of any driver may have, so a request counts only where its class
is the GPU driver's: by its name, or because the selectors name that driver. Where nobody has asked
for the class, an amount of memory is taken for a GPU's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gpufence.dialects.spec import LARGEST_CARD, UNKNOWN_AMOUNT, Amount
from gpufence.errors import GpufenceError
from gpufence.names import DRA_CLASSES, DRA_DRIVER, DRA_MEMORIES
from gpufence.quantity import read_bytes
from gpufence.shape import Object, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MOST_COUNT = 64
_REQUESTS = "spec.devices.requests"


class DoubtError(GpufenceError):
    """Raised where a claim says nothing that a limit could be made of; the text says why."""


class Asked(NamedTuple):
    """
    What one request asks for of one card. `by_policy`: no amount, so that it gets what the driver's
    policy says.
    """

    request: str
    amount: Amount
    by_policy: bool = False


def class_key(name: str) -> str:
    """
    Return what a DeviceClass is called among what was found; no claim of a pod can be called so.
    """
    return f"device class {name}"


def classes_asked(claims: Iterable[Object | str]) -> list[str]:
    """
    Return the classes whose own words tell what claims, and templates, ask for; of those that are
    allocated, or that nobody can read, there are none.
    """
    named: dict[str, None] = {}
    for item in claims:
        if not isinstance(item, str):
            with suppress(GpufenceError):  # whoever reads the claim says what is wrong with it
                named |= dict.fromkeys(_classes_of(item))
    return list(named)


def _classes_of(item: Object) -> list[str]:
    if as_object(item.get("status"), "status").get("allocation"):
        return []
    spec = as_object(item.get("spec"), "spec")
    named = [
        as_text(choice.get("deviceClassName"), f"{_REQUESTS}.deviceClassName")
        for wish in _requests(as_object(spec.get("spec"), "spec.spec") or spec)
        for choice in _choices(wish)
    ]
    return [name for name in named if name and name not in DRA_CLASSES]


def asked(spec: Object, found: Mapping[str, Object | str]) -> Iterator[Asked]:
    """Yield what a claim asks for, as far as that is a GPU; `found` has the classes, or why not."""
    for item in _requests(spec):
        request = as_text(item.get("name"), f"{_REQUESTS}.name")
        choices = _choices(item)
        wishes = [wish for each in choices if (wish := _wish(each, found)) is not None]
        if not wishes:
            continue
        known = all(each.known for each in wishes) and len(wishes) == len(choices)
        amount = Amount(min(each.bytes for each in wishes)) if known else UNKNOWN_AMOUNT
        exactly = as_object(item.get("exactly"), f"{_REQUESTS}.exactly")
        by_policy = not known and exactly.get("deviceClassName") == DRA_DRIVER
        counts = [each.get("count") for each in choices]
        count = min([each for each in counts if isinstance(each, int)], default=1)
        for _ in range(min(max(count, 1), _MOST_COUNT)):
            yield Asked(request, amount, by_policy)


def memory_of(capacities: Object, field: str) -> Amount | None:
    """
    Return the memory among the capacities of a device, the less where it goes by both of its names.
    """
    found = [
        _amount(capacities[key], f"{field}.{key}") for key in DRA_MEMORIES if key in capacities
    ]
    return min(found, key=lambda each: each.bytes, default=None)


def names_driver(item: Object) -> bool:
    """Return whether selectors, of a class or of a request, speak of the GPU driver's devices."""
    field = "selectors.cel.expression"
    return any(
        DRA_DRIVER in as_text(as_object(each.get("cel"), field).get("expression"), field)
        for each in objects(item.get("selectors"), "selectors")
    )


def _requests(spec: Object) -> list[Object]:
    devices = as_object(spec.get("devices"), "spec.devices")
    return objects(devices.get("requests"), _REQUESTS)


def _choices(item: Object) -> list[Object]:
    """Return the ways to satisfy a request."""
    exactly = as_object(item.get("exactly"), f"{_REQUESTS}.exactly")
    return [exactly] if exactly else objects(item.get("firstAvailable"), _REQUESTS)


def _wish(choice: Object, found: Mapping[str, Object | str]) -> Amount | None:
    """
    Read one way to satisfy a request; None for what may be no GPU. Without an amount the driver's
    policy decides, which may be the whole card or its least share.
    """
    if choice.get("adminAccess") is True:
        return None
    field = f"{_REQUESTS}.capacity"
    capacity = as_object(choice.get("capacity"), field)
    requests = as_object(capacity.get("requests"), f"{field}.requests")
    named = as_text(choice.get("deviceClassName"), f"{_REQUESTS}.deviceClassName")
    told = found.get(class_key(named))
    memory = memory_of(requests, f"{field}.requests")
    if named in DRA_CLASSES:
        return UNKNOWN_AMOUNT if memory is None else memory
    if told is None or (memory is None and isinstance(told, str)):
        return memory
    if isinstance(told, str):
        raise DoubtError(f"a claim asks for memory of device class {named}, which {told}")
    if not names_driver(choice) and not names_driver(as_object(told.get("spec"), "spec")):
        return None
    return UNKNOWN_AMOUNT if memory is None else memory


def _amount(value: object, field: str) -> Amount:
    amount = read_bytes(value, field)
    if amount > LARGEST_CARD:
        raise DoubtError(f"{field} is more than any card holds")
    return Amount(amount)
