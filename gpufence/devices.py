"""
What resource claims (DRA) give a pod: read from ResourceClaims, their templates and ResourceSlices.

Before a claim is allocated its request is all there is, a lower bound of what will be consumed: the
driver's policy rounds up. Afterwards what it has consumed is the limit, never the request. What
cannot be read is a doubt that is put into words, and no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.dialects.spec import LARGEST_CARD, UNKNOWN_AMOUNT, WHOLE_CARD, Amount
from gpufence.errors import GpufenceError
from gpufence.names import DRA_CLASSES, DRA_DRIVER, DRA_MEMORY
from gpufence.pods import EXTENDED
from gpufence.quantity import read_bytes
from gpufence.shape import Object, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.cards import Card
    from gpufence.pods import Pod, PodClaim

MOST_CLAIMS = 8
"""
Of one pod, that are read: each costs a question while somebody waits for the answer.
"""
_MOST_COUNT = 64


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


class DoubtError(GpufenceError):
    """
    Raised where a claim says nothing that a limit could be made of; the text says why.
    """


def with_devices(pod: Pod, found: Mapping[str, Object | str], reading: Reading) -> Pod:
    """
    Fill in what a pod's claims give it; `found` has each claim, or its template, as the API server
    shows it, or why it does not, by the pod's own name for it.
    """
    if not pod.claims:
        return pod
    devices: list[Device] = []
    try:
        if len(pod.claims) > MOST_CLAIMS:
            raise DoubtError(f"it has more than {MOST_CLAIMS} resource claims")
        for ref in pod.claims:
            claim = found.get(ref.name, "has not been read")
            if isinstance(claim, str):
                raise DoubtError(f"{called(ref)} {claim}")
            devices += _devices(ref, claim, reading)
    except GpufenceError as error:
        return pod._replace(devices=(), doubt=str(error))
    return pod._replace(devices=tuple(devices), doubt="")


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
    """
    Name a claim as people find it.
    """
    if ref.claim:
        return f"resource claim {ref.claim}"
    return f"resource claim template {ref.template}" if ref.template else f"claim {ref.name}"


def _devices(ref: PodClaim, claim: Object, reading: Reading) -> list[Device]:
    metadata = as_object(claim.get("metadata"), "metadata")
    spec = as_object(claim.get("spec"), "spec")
    if not ref.claim:
        if reading.bound:
            raise DoubtError(f"{called(ref)} has not become a claim yet")
        return list(_asked(ref, as_object(spec.get("spec"), "spec.spec")))
    if (ref.template or ref.name == EXTENDED) and reading.pod_uid not in ("", *_owners(metadata)):
        raise DoubtError(f"{called(ref)} belongs to another pod")
    status = as_object(claim.get("status"), "status")
    allocation = as_object(status.get("allocation"), "status.allocation")
    if not reading.bound and metadata.get("deletionTimestamp") is not None:
        raise DoubtError(f"{called(ref)} is being deleted")
    if not allocation:
        if reading.bound:
            raise DoubtError(f"{called(ref)} is not allocated")
        return list(_asked(ref, spec))
    users = _users(status)
    if reading.bound and reading.pod_uid not in users:
        raise DoubtError(f"{called(ref)} is not reserved for this pod")
    group = as_text(metadata.get("uid"), "metadata.uid")
    sharers = len({*users, reading.pod_uid})
    return [
        each._replace(group=group, sharers=sharers)
        for each in _allocated(ref, allocation, reading.cards)
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


def _allocated(ref: PodClaim, allocation: Object, cards: Mapping[str, Card]) -> Iterator[Device]:
    """
    Yield what a claim has got of GPUs; access for administrators consumes nothing.
    """
    field = "status.allocation.devices"
    devices = as_object(allocation.get("devices"), field)
    for item in objects(devices.get("results"), f"{field}.results"):
        driver = as_text(item.get("driver"), f"{field}.driver")
        if driver != DRA_DRIVER or item.get("adminAccess") is True:
            continue
        pool = as_text(item.get("pool"), f"{field}.pool")
        name = f"{driver}/{pool}/{as_text(item.get('device'), f'{field}.device')}"
        request = as_text(item.get("request"), f"{field}.request").partition("/")[0]
        consumed = as_object(item.get("consumedCapacity"), f"{field}.consumedCapacity")
        if DRA_MEMORY in consumed:
            amount = _amount(consumed[DRA_MEMORY], f"{field}.consumedCapacity.{DRA_MEMORY}")
        else:
            amount = UNKNOWN_AMOUNT if item.get("shareID") is not None else WHOLE_CARD
        yield Device(ref.name, request, amount, name, cards.get(name))


def _asked(ref: PodClaim, spec: Object) -> Iterator[Device]:
    """
    Yield what a claim asks for, as far as that is a GPU for certain or by its memory.
    """
    field = "spec.devices.requests"
    devices = as_object(spec.get("devices"), "spec.devices")
    for item in objects(devices.get("requests"), field):
        request = as_text(item.get("name"), f"{field}.name")
        exactly = as_object(item.get("exactly"), f"{field}.exactly")
        choices = [exactly] if exactly else objects(item.get("firstAvailable"), field)
        asked = [amount for each in choices if (amount := _wish(each, field)) is not None]
        if not asked:
            continue
        known = all(each.known for each in asked) and len(asked) == len(choices)
        amount = Amount(min(each.bytes for each in asked)) if known else UNKNOWN_AMOUNT
        by_policy = not known and exactly.get("deviceClassName") == DRA_DRIVER
        counts = [each.get("count") for each in choices]
        count = min([each for each in counts if isinstance(each, int)], default=1)
        for _ in range(min(max(count, 1), _MOST_COUNT)):
            yield Device(ref.name, request, amount, by_policy=by_policy)


def _wish(choice: Object, field: str) -> Amount | None:
    """
    Read one way to satisfy a request; None for what may be no GPU. Without an amount the driver's
    policy decides, which may be the whole card or its least share.
    """
    if choice.get("adminAccess") is True:
        return None
    capacity = as_object(choice.get("capacity"), f"{field}.capacity")
    requests = as_object(capacity.get("requests"), f"{field}.capacity.requests")
    if DRA_MEMORY in requests:
        return _amount(requests[DRA_MEMORY], f"{field}.capacity.requests.{DRA_MEMORY}")
    named = as_text(choice.get("deviceClassName"), f"{field}.deviceClassName")
    return UNKNOWN_AMOUNT if named in DRA_CLASSES else None


def _amount(value: object, field: str) -> Amount:
    amount = read_bytes(value, field)
    if amount > LARGEST_CARD:
        raise DoubtError(f"{field} is more than any card holds")
    return Amount(amount)
