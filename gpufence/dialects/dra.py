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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpufence.devices import Device
    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Container, Pod


def read(pod: Pod, _: Sequence[GpuRequest], __: Units) -> Declared | None:
    """
    Read what the pod's claims give its containers; none of them uses what none of them names.
    """
    users = [(item, used) for item in pod.containers if (used := _used(item, pod.devices))]
    if not users:
        return None
    claims = []
    for container, used in users:
        by_card: dict[str, list[Amount]] = {}
        for place in used:
            among = _among(container, [item for item, theirs in users if place in theirs])
            by_card.setdefault(_card(pod, place), []).append(_part(pod.devices[place], among))
        amounts = [_together(each) for each in by_card.values()]
        claims.append(Claim(container.name, _smallest(amounts), len(amounts)))
    whole = all(claim.amount == WHOLE_CARD for claim in claims)
    return Declared(
        dialect=SPEC.name,
        claims=tuple(claims),
        basis=_basis(pod, whole=whole),
        implied=whole,
        most_bytes=None if whole else _most(pod, {place for _, used in users for place in used}),
    )


def _used(container: Container, devices: Sequence[Device]) -> list[int]:
    """
    Return the places of the devices that a container uses.
    """
    return [
        place
        for place, device in enumerate(devices)
        if any(
            use.claim == device.claim and use.request in ("", device.request)
            for use in container.claims
        )
    ]


def _card(pod: Pod, place: int) -> str:
    """
    Name the card of a device; before a scheduler has chosen, one for each.
    """
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


def _part(device: Device, among: int) -> Amount:
    if device.amount.known and device.amount.share is None:
        return Amount(device.amount.bytes // among)
    return device.amount


def _together(amounts: Sequence[Amount]) -> Amount:
    """
    Add up what there is on one card; the whole card once.
    """
    if not all(each.known for each in amounts):
        return UNKNOWN_AMOUNT
    if any(each.share for each in amounts):
        return WHOLE_CARD
    return Amount(sum(each.bytes for each in amounts))


def _smallest(amounts: Sequence[Amount]) -> Amount:
    """
    Return what there is on every card: a whole one is more than any amount.
    """
    if not all(each.known for each in amounts):
        return UNKNOWN_AMOUNT
    return min(
        (each for each in amounts if each.share is None),
        key=lambda each: each.bytes,
        default=WHOLE_CARD,
    )


def _most(pod: Pod, used: Iterable[int]) -> int | None:
    """
    Return what all containers together have on that card where they have least.
    """
    by_card: dict[str, list[Amount]] = {}
    for place in sorted(used):
        by_card.setdefault(_card(pod, place), []).append(pod.devices[place].amount)
    least = _smallest([_together(each) for each in by_card.values()])
    return max(least.bytes, 1) if least.known else None


def _basis(pod: Pod, *, whole: bool) -> str:
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
    by_claims=True,
)
