"""
What resource claims (DRA) give a pod: read from ResourceClaims, their templates and ResourceSlices.

Before a claim is allocated its request is all there is, a lower bound of what will be consumed: the
driver's policy rounds up. Afterwards what it has consumed is the limit, never the request. What
cannot be read is a doubt that is put into words, and no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.claim_requests import DoubtError, asked, memory_of
from gpufence.dialects.spec import UNKNOWN_AMOUNT, WHOLE_CARD, Amount
from gpufence.errors import GpufenceError
from gpufence.names import DRA_DRIVER
from gpufence.pods import EXTENDED, ClaimUse
from gpufence.shape import Object, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.cards import Card
    from gpufence.pods import Pod, PodClaim

MOST_CLAIMS = 8
"""That a pod may name: each costs a question while somebody waits for the answer."""
MOST_READ = MOST_CLAIMS + 1  # and the one that its scheduler makes for extended resources


class Device(NamedTuple):
    """
    What one request of a claim has of one card: `amount` is UNKNOWN_AMOUNT where nobody says so,
    and WHOLE_CARD where the device is not shared.

    `name` is driver/pool/device, empty before the claim is allocated; `card` is what its
    ResourceSlice says of it. `group` is the claim's UID: all pods that use it together have the
    amount, whomever it was made for, and `sharers` of them are known. `by_policy`: it asks for no
    amount, and gets what the driver's policy says.
    """

    claim: str
    request: str
    amount: Amount
    name: str = ""
    card: Card | None = None
    group: str = ""
    sharers: int = 1
    by_policy: bool = False


class Reading(NamedTuple):
    """
    Whose claims are read, and when: a pod that is `bound` has devices, or something is wrong.

    `cards` are those of the node, by driver/pool/device.
    """

    pod_uid: str = ""
    bound: bool = False
    cards: Mapping[str, Card] = {}


def with_devices(pod: Pod, found: Mapping[str, Object | str], reading: Reading) -> Pod:
    """
    Fill in what a pod's claims give it; `found` has each claim, or its template, as the API server
    shows it, or why it does not, by the pod's own name for it, and the classes they ask for.
    """
    if not pod.claims:
        return pod
    devices: list[Device] = []
    first = first_names(pod)
    try:
        if has_too_many(pod):
            raise DoubtError(f"it has more than {MOST_CLAIMS} resource claims")
        for ref in pod.claims:
            if first[ref.name] != ref.name:
                continue
            claim = found.get(ref.name, "has not been read")
            if isinstance(claim, str):
                raise DoubtError(f"{called(ref)} {claim}")
            devices += _devices(ref, claim, reading, found)
    except GpufenceError as error:
        return pod._replace(devices=(), doubt=str(error))
    return _by_first_names(pod, first)._replace(devices=tuple(devices), doubt="")


def has_too_many(pod: Pod) -> bool:
    """Return whether a pod names more claims than are read of one."""
    return sum([ref.name != EXTENDED for ref in pod.claims]) > MOST_CLAIMS


def first_names(pod: Pod) -> dict[str, str]:
    """Return for each name that a pod has for a claim the first one that it has for just that."""
    met: dict[str, str] = {}
    return {
        ref.name: met.setdefault(ref.claim, ref.name) if ref.claim else ref.name
        for ref in pod.claims
    }


def _by_first_names(pod: Pod, first: Mapping[str, str]) -> Pod:
    """Call a claim that a pod names twice by its first name: it is given once."""
    if all(name == called_first for name, called_first in first.items()):
        return pod
    containers = [
        item._replace(
            claims=tuple([ClaimUse(first.get(use, use), request) for use, request in item.claims])
        )
        for item in pod.containers
    ]
    return pod._replace(containers=tuple(containers))


def with_parts(pod: Pod, found: Mapping[str, Object | str], reading: Reading) -> Pod:
    """
    Fill in what a pod may be told of what its claims give it: of what several pods use an equal
    part, so that what their frameworks take together is within the claim.
    """
    if not pod.claims:
        return pod
    read = with_devices(pod, found, reading)
    return read._replace(devices=tuple([_part(each) for each in read.devices]))


def _part(device: Device) -> Device:
    amount = device.amount
    if device.sharers == 1 or not amount.known or amount.share:
        return device
    return device._replace(amount=Amount(max(amount.bytes // device.sharers, 1)))


def on_card(pod: Pod, uuid: str) -> Pod:
    """
    Leave a pod what it has on one card; all it has where nothing of that is known to be there.
    """
    there = tuple([each for each in pod.devices if each.card and each.card.uuid == uuid])
    return pod._replace(devices=there) if there else pod


def called(ref: PodClaim) -> str:
    """Name a claim as people find it."""
    if ref.claim:
        return f"resource claim {ref.claim}"
    return f"resource claim template {ref.template}" if ref.template else f"claim {ref.name}"


def _devices(
    ref: PodClaim, claim: Object, reading: Reading, found: Mapping[str, Object | str]
) -> list[Device]:
    metadata = as_object(claim.get("metadata"), "metadata")
    spec = as_object(claim.get("spec"), "spec")
    if not ref.claim:
        if reading.bound:
            raise DoubtError(f"{called(ref)} has not become a claim yet")
        return _asked(ref, as_object(spec.get("spec"), "spec.spec"), found)
    if (ref.template or ref.name == EXTENDED) and reading.pod_uid not in ("", *_owners(metadata)):
        raise DoubtError(f"{called(ref)} belongs to another pod")
    status = as_object(claim.get("status"), "status")
    allocation = as_object(status.get("allocation"), "status.allocation")
    if not reading.bound and metadata.get("deletionTimestamp") is not None:
        raise DoubtError(f"{called(ref)} is being deleted")
    if not allocation:
        if reading.bound:
            raise DoubtError(f"{called(ref)} is not allocated")
        return _asked(ref, spec, found)
    users = _users(status)
    if reading.bound and reading.pod_uid not in users:
        raise DoubtError(f"{called(ref)} is not reserved for this pod")
    group = as_text(metadata.get("uid"), "metadata.uid")
    sharers = len({*users, reading.pod_uid})
    return [
        each._replace(group=group, sharers=sharers)
        for each in _allocated(ref, claim, reading.cards)
    ]


def _owners(metadata: Object) -> list[str]:
    """
    Return the UIDs of the pods that a claim was made for. Any other pod may use it by its name.
    """
    field = "metadata.ownerReferences"
    return [
        as_text(item.get("uid"), f"{field}.uid")
        for item in objects(metadata.get("ownerReferences"), field)
        if item.get("kind") == "Pod"
    ]


def _users(status: Object) -> list[str]:
    field = "status.reservedFor"
    return [
        as_text(item.get("uid"), field)
        for item in objects(status.get("reservedFor"), field)
        if item.get("resource") == "pods"
    ]


def has_admin_access(pod: Pod, found: Mapping[str, Object | str]) -> bool:
    """
    Return whether a pod's claims, which have been read, let it look after cards that are others'.
    """
    return any(
        item.get("adminAccess") is True
        for ref in pod.claims
        for item in _results(found.get(ref.name, ""))
    )


def _results(claim: Object | str) -> list[Object]:
    if isinstance(claim, str):
        return []
    status = as_object(claim.get("status"), "status")
    field = "status.allocation"
    devices = as_object(as_object(status.get("allocation"), field).get("devices"), field)
    return objects(devices.get("results"), f"{field}.devices.results")


def _allocated(ref: PodClaim, claim: Object, cards: Mapping[str, Card]) -> Iterator[Device]:
    """Yield what a claim has got of GPUs; access for administrators consumes nothing."""
    field = "status.allocation.devices"
    for item in _results(claim):
        driver = as_text(item.get("driver"), f"{field}.driver")
        if driver != DRA_DRIVER or item.get("adminAccess") is True:
            continue
        pool = as_text(item.get("pool"), f"{field}.pool")
        name = f"{driver}/{pool}/{as_text(item.get('device'), f'{field}.device')}"
        request = as_text(item.get("request"), f"{field}.request").partition("/")[0]
        consumed = as_object(item.get("consumedCapacity"), f"{field}.consumedCapacity")
        amount = memory_of(consumed, f"{field}.consumedCapacity")
        if amount is None:
            amount = UNKNOWN_AMOUNT if item.get("shareID") is not None else WHOLE_CARD
        yield Device(ref.name, request, amount, name, cards.get(name))


def _asked(ref: PodClaim, spec: Object, found: Mapping[str, Object | str]) -> list[Device]:
    return [
        Device(ref.name, each.request, each.amount, by_policy=each.by_policy)
        for each in asked(spec, found)
    ]
