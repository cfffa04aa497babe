"""
DRA: devices by resource claims, whose memory Kubernetes' own scheduler counts and nobody limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import (
    UNKNOWN_AMOUNT,
    WHOLE_CARD,
    Amount,
    Claim,
    Declared,
    DialectSpec,
)
from gpufence.names import DRA_CLASS_PREFIX, DRA_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.devices import Device
    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Container, Pod

_CLASS, _INSTANCES = [f"{DRA_CLASS_PREFIX}{name}" for name in DRA_CLASSES]
_MOST_CARDS = 64


def read(pod: Pod, requests: Sequence[GpuRequest], units: Units) -> Declared | None:
    """
    Read what the pod's claims give its containers, those too that its scheduler makes for resources
    that name a class; none of them uses what none of them names.
    """
    users = {item.name: used for item in pod.containers if (used := _used(item, pod.devices))}
    asked = {item.name: asked for item, counts in requests if (asked := _by_class(counts, units))}
    amounts = [_amount(device, units) for device in pod.devices]
    claims = []
    for container in pod.containers:
        by_card: dict[str, list[Amount]] = {}
        for place in users.get(container.name, ()):
            among = _among(
                container, [item for item in pod.containers if place in users.get(item.name, ())]
            )
            by_card.setdefault(_card(pod, place), []).append(_part(amounts[place], among))
        there = [_together(each) for each in by_card.values()] + asked.get(container.name, [])
        if there:
            claims.append(Claim(container.name, _smallest(there), len(there)))
    if not claims:
        return None
    whole = all(claim.amount == WHOLE_CARD for claim in claims)
    places = {place for used in users.values() for place in used}
    return Declared(
        dialect=SPEC.name,
        claims=tuple(claims),
        basis=_basis(pod, whole=whole, asked=bool(asked)),
        implied=whole,
        most_bytes=None if whole else _most(pod, amounts, places, asked.values()),
    )


def is_lower_bound(pod: Pod) -> bool:
    """Return whether a pod may get more than what is known of its claims: none is allocated yet."""
    return not (pod.devices and all(device.name for device in pod.devices))


def _by_class(counts: Mapping[str, int], units: Units) -> list[Amount]:
    """
    Return what a container gets of resources that name a class, for which a claim is made when the
    pod is placed: a card of each, and of those that are shared what the driver's policy says.
    """
    cards = min(counts.get(_CLASS, 0), _MOST_CARDS)
    instances = min(counts.get(_INSTANCES, 0), _MOST_CARDS)
    return [_by_policy(units)] * cards + [UNKNOWN_AMOUNT] * instances


def _amount(device: Device, units: Units) -> Amount:
    return _by_policy(units) if device.by_policy else device.amount


def _by_policy(units: Units) -> Amount:
    return UNKNOWN_AMOUNT if units.claim_bytes is None else Amount(units.claim_bytes)


def _used(container: Container, devices: Sequence[Device]) -> list[int]:
    """Return the places of the devices that a container uses."""
    return [
        place
        for place, device in enumerate(devices)
        if container.uses(device.claim, device.request)
    ]


def _card(pod: Pod, place: int) -> str:
    """Name the card of a device; before a scheduler has chosen, one for each."""
    return pod.devices[place].name or str(place)


def _among(container: Container, users: Sequence[Container]) -> int:
    """
    Return among how many a device is split that these use, so that those who run together never
    have more than all of it.
    """
    kinds = [item.kind.value for item in users]
    staying = kinds.count("sidecar")
    life = kinds.count("container") + staying
    early = kinds.count("init container") > 0
    if container.kind == "init container":
        return staying + 1
    return max(life, staying + 1) if early and container.kind == "sidecar" else life


def _part(amount: Amount, among: int) -> Amount:
    if amount.known and amount.share is None:
        return Amount(amount.bytes // among)
    return amount


def _together(amounts: Sequence[Amount]) -> Amount:
    """Add up what there is on one card; the whole card once."""
    if not all(each.known for each in amounts):
        return UNKNOWN_AMOUNT
    if any(each.share for each in amounts):
        return WHOLE_CARD
    return Amount(sum(each.bytes for each in amounts))


def _smallest(amounts: Sequence[Amount]) -> Amount:
    """Return what there is on every card: a whole one is more than any amount."""
    if not all(each.known for each in amounts):
        return UNKNOWN_AMOUNT
    return min(
        (each for each in amounts if each.share is None),
        key=lambda each: each.bytes,
        default=WHOLE_CARD,
    )


def _most(
    pod: Pod, amounts: Sequence[Amount], used: Iterable[int], asked: Iterable[list[Amount]]
) -> int | None:
    """
    Return what all containers together have on that card where they have least; what they only ask
    for may be on a card of its own.
    """
    by_card: dict[str, list[Amount]] = {}
    for place in sorted(used):
        by_card.setdefault(_card(pod, place), []).append(amounts[place])
    alone = [amount for each in asked for amount in each]
    least = _smallest([*[_together(each) for each in by_card.values()], *alone])
    return max(least.bytes, 1) if least.known else None


def _basis(pod: Pod, *, whole: bool, asked: bool) -> str:
    if asked:
        return "the least that its resources can get, exact later"
    shared = max(device.sharers for device in pod.devices)
    if shared > 1:
        return f"its part of a claim that {shared} pods use"
    allocated = all(device.name for device in pod.devices)
    if whole:
        return "whole devices"
    return "consumed by its claims" if allocated else "asked for by its claims, rounded up later"


SPEC = DialectSpec(
    name="dra",
    system="DRA (ResourceClaims)",
    unit="a quantity; what the claim has consumed counts, once it is allocated",
    read=read,
    resources=(_CLASS, _INSTANCES),
    by_claims=True,
)
