"""
DeviceTaintRules for the cards of this node: made and deleted by their names, one for each card that
its DRA driver publishes, by one thread.

Only `NoSchedule` is ever written, which moves nobody. Nothing is asked while nothing is decided.
"""

from __future__ import annotations

import hashlib
import logging
import random
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.backoff import Backoff
from gpufence.slices import newest, read_slice
from kube import ConflictError, ForbiddenError, KubeError, NotFoundError, group
from kube.kinds import objects_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.cluster.settings import ClusterSettings
    from agent.model.taint import Disorder
    from gpufence.shape import Object
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)

_BACKOFF: Final = Backoff(limit_seconds=600.0)
_MOST_NAME: Final = 253
_HASH: Final = 16
_NO_API: Final = "this API server has no DeviceTaintRules: Kubernetes >= 1.37 has"


class PublishedDevice(NamedTuple):
    """A card as claims know it; `owners` is whose its slice is, which is the Node."""

    pool: str
    device: str
    owners: tuple[Object, ...]


class TaintWriter:
    """
    Rules are written as the agent itself, which a policy ties to its node; slices are read as the
    node. What does not get through is tried again, ever more seldom.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._wanted: Mapping[str, Disorder] = {}
        self._written: dict[str, Disorder] = {}
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._complaint = ""

    def start(self, own: Client, acting: Client) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(own, acting), name="taints", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End. Rules stay: the next agent takes them up, and until then nobody watches the card."""
        self._stop.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def taint(self, wanted: Mapping[str, Disorder]) -> None:
        """Have the cards with these UUIDs tainted or not, as decided; of others nothing is."""
        self._wanted = wanted
        self._changed.set()

    def _run(self, own: Client, acting: Client) -> None:
        failures = 0
        while not self._stop.is_set():
            pause = _BACKOFF.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
            self._changed.wait(pause if failures else None)
            self._changed.clear()
            if self._stop.is_set():
                return
            try:
                missing = self._round(own, acting, self._wanted)
            except KubeError as error:
                failures += 1
                self._complain(error)
            else:
                failures = failures + 1 if missing else 0

    def _round(self, own: Client, acting: Client, wanted: Mapping[str, Disorder]) -> bool:
        """Write what is left; return whether a card in disorder is not published yet."""
        left = {uuid: why for uuid, why in wanted.items() if self._written.get(uuid) != why}
        if not left:
            return False
        query = {"fieldSelector": f"spec.nodeName={self._settings.node}"}
        path = group(names.RESOURCE_GROUP, "resourceslices")
        listed = acting.get(path, query, timeout_seconds=self._settings.request_seconds)
        devices = published_devices(objects_of(listed, "items"))
        for uuid, why in left.items():
            device = devices.get(uuid)
            if device is not None:  # of others claims know nothing
                self._write(own, rule_name(self._settings.node, device.device), device, why)
                self._written[uuid] = why
        return any(why and uuid not in devices for uuid, why in left.items())

    def _write(self, own: Client, name: str, device: PublishedDevice, why: Disorder) -> None:
        seconds = self._settings.request_seconds
        if why:
            rules = group(names.RESOURCE_GROUP, "devicetaintrules")
            body = rule(name, device, why)
            try:
                own.post(rules, body, timeout_seconds=seconds)
            except ConflictError:
                return  # one stands already, whatever its reason
            _log.info("device %s takes no more claims: %s memory", device.device, why)
            return
        try:
            path = group(names.RESOURCE_GROUP, "devicetaintrules", name)
            own.delete(path, timeout_seconds=seconds)
        except NotFoundError:
            return
        _log.info("device %s takes claims again", device.device)

    def _complain(self, error: KubeError) -> None:
        """Say once what is wrong, and what helps."""
        why = str(error)
        if isinstance(error, NotFoundError):
            why = _NO_API
        elif isinstance(error, ForbiddenError):
            why = f"{error}; apply component device-taints"
        if why != self._complaint:
            _log.warning("cards cannot be tainted: %s", why)
        self._complaint = why


def published_devices(slices: Iterable[Object]) -> dict[str, PublishedDevice]:
    """
    Return the devices that slices of one node list, by their cards' UUIDs; of each pool the newest
    generation counts.
    """
    known = [(item, read) for item in slices if (read := read_slice(item)) is not None]
    counts = newest([read for _, read in known])
    found: dict[str, PublishedDevice] = {}
    for item, read in known:
        for name, card in read.cards.items():
            if counts.get(name) is card:
                device = name.rpartition("/")[2]
                found[card.uuid] = PublishedDevice(read.pool, device, _owners(item))
    return found


def rule_name(node: str, device: str) -> str:
    """Name the rule of one device; one that would be too long ends in a hash of it."""
    name = f"{names.TAINT_PREFIX}{node}-{device}"
    if len(name) <= _MOST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    return f"{name[: _MOST_NAME - _HASH - 1].rstrip('-.')}-{digest}"


def rule(name: str, device: PublishedDevice, why: Disorder) -> JsonObject:
    """Describe the taint of one device, which goes with its Node."""
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": name,
            "labels": {names.MANAGED_BY: names.AGENT},
            "ownerReferences": list(device.owners),
        },
        "spec": {
            "deviceSelector": {
                "driver": names.DRA_DRIVER,
                "pool": device.pool,
                "device": device.device,
            },
            "taint": {"key": names.DEVICE_TAINT, "value": str(why), "effect": "NoSchedule"},
        },
    }


def _owners(item: Object) -> tuple[Object, ...]:
    metadata = item.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    return tuple(
        {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
        for owner in owners or ()
        if owner.get("kind") == "Node"
    )
