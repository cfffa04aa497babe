"""
Clusters that share GPUs by gpushare, for `kubectl inspect gpushare`.

What the program of that name from gpushare-device-plugin (45fb8b8, 2022) prints for each of them is
in tests/golden/gpushare. Cards and nodes that it prints in any order are few enough here that ours
is among them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from gpufence.names import GPUSHARE_COUNT, GPUSHARE_MEMORY
from gpufence.quantity import MIB
from kube import JsonObject
from kubectl_gpufence.gpushare.books import (
    Holdings,
    read_book,
    read_booking,
    summary,
    with_bookings,
)
from tests.support.builders import container
from tests.support.plugin import card_row, snapshot
from tests.support.servers import ApiServer, Exchange, reply

FOLDER: Final = Path(__file__).parents[1] / "golden" / "gpushare"
INDEX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ALLOCATION: Final = "scheduler.framework.gpushare.allocation"


@dataclass(frozen=True)
class Cluster:
    """Nodes and pods as the API server lists them, by name; `asked` is the node that is named."""

    nodes: tuple[JsonObject, ...] = ()
    pods: tuple[JsonObject, ...] = ()
    asked: str = ""


def sharing(
    name: str, units: object = "15", cards: object = "1", address: str | None = "10.0.0.1"
) -> JsonObject:
    """Build a node as gpushare's device plugin leaves it; None leaves an amount or address out."""
    offers = {GPUSHARE_MEMORY: units, GPUSHARE_COUNT: cards, "cpu": "8"}
    inside = [] if address is None else [{"type": "InternalIP", "address": address}]
    return {
        "metadata": {"name": name, "uid": f"uid-of-{name}"},
        "status": {
            "allocatable": {key: amount for key, amount in offers.items() if amount is not None},
            "addresses": [{"type": "Hostname", "address": name}, *inside],
        },
    }


def booked(
    name: str,
    node: str = "gpu-1",
    *units: object,
    index: str | None = None,
    allocation: object = None,
    namespace: str = "team-a",
    phase: str = "Running",
) -> JsonObject:
    """Build a pod of containers that ask for these units, with the scheduler's annotations."""
    annotations = {} if index is None else {INDEX: index}
    if allocation is not None:
        text = allocation if isinstance(allocation, str) else json.dumps(allocation)
        annotations[ALLOCATION] = text
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    wanted = units or ("3",)
    containers = [container(f"c{at}", **{GPUSHARE_MEMORY: of}) for at, of in enumerate(wanted)]
    spec = {"containers": containers, **({"nodeName": node} if node else {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


_MIXED = Cluster(
    (
        sharing("a-node-with-a-long-name", "30", "2", "192.168.0.71"),
        sharing("b", "15", "1", "10.0.0.2"),
        sharing("c-bare", None, None, "10.0.0.3"),
        sharing("d", "44", "4", None),
    ),
    (
        booked("trainer", "a-node-with-a-long-name", "5", index="1"),
        booked("server-with-a-longer-name", "a-node-with-a-long-name", "2", "1", index="0"),
        booked("other", "b", "15", index="0", namespace="a-team-of-many"),
        booked("waits", "d", "4"),
        booked("done", "d", "4", index="0", phase="Succeeded"),
        booked("failed", "d", "4", index="0", phase="Failed"),
        booked("nowhere", "", "4"),
        booked("elsewhere", "c-bare", "4", index="0"),
    ),
)
_ACK = Cluster(
    (sharing("gpu-1", "60", "4", "10.0.0.1"), sharing("gpu-2", "15", "1", "10.0.0.2")),
    (
        booked("both", "gpu-1", "8", index="3", allocation={"0": {"1": 1}, "1": {"1": 7}}),
        booked("wide", "gpu-1", "12", allocation={"0": {"0": 3, "1": 3, "2": 3, "3": 3}}),
        booked("old", "gpu-1", "2", index="2"),
        booked("wrong-list", "gpu-1", "2", index="2", allocation=[1]),
        booked("wrong-text", "gpu-1", "2", index="2", allocation="{"),
        booked("wrong-card", "gpu-1", "2", index="2", allocation={"0": {"x": 2}}),
        booked("wrong-container", "gpu-1", "2", index="2", allocation={"x": {"0": 2}}),
        booked("wrong-amount", "gpu-1", "2", index="2", allocation='{"0": {"0": 1.0}}'),
        booked("wrong-truth", "gpu-1", "2", index="2", allocation='{"0": {"0": true}}'),
        booked("nothing", "gpu-1", "2", index="2", allocation="null"),
        booked("empty", "gpu-1", "2", index="2", allocation='{"0": null}'),
        booked("null-card", "gpu-1", "2", index="2", allocation='{"0": {"0": null}}'),
        booked("same", "gpu-1", "2", allocation='{"0": {"0": 9}, "+0": {"01": 1, "1": 1}}'),
        booked("twice", "gpu-1", "2", index="2", allocation='{"0": {"0": [], "0": 1}}'),
        booked("replaced", "gpu-1", "2", allocation='{"0": {"x": 1}, "0": {"3": 1}}'),
    ),
)
_ODD = Cluster(
    (
        sharing("gpu-1", "31", "2"),
        sharing("gpu-2", "16", None, "10.0.0.2"),
        sharing("gpu-3", "45", "3", "10.0.0.3"),
    ),
    (
        booked("beyond", "gpu-1", "3", index="2"),
        booked("far", "gpu-1", "4", index="5"),
        booked("below", "gpu-1", "5", index="-2"),
        booked("words", "gpu-1", "6", index="one"),
        booked("spaced", "gpu-1", "6", index=" 1"),
        booked("signed", "gpu-1", "1", index="+1"),
        booked("spread", "gpu-1", "8", allocation={"0": {"-1": 3, "0": 5}}),
        booked("countless", "gpu-2", "7", index="0"),
        booked("zero", "gpu-3", "0", index="0"),
    ),
)
_FAR = Cluster((sharing("gpu-1"),), (booked("least", index="-9223372036854775808"),))
_MIB = Cluster(
    (
        sharing("i-2ze0gl97vw1", "7606", "1", "192.168.0.72"),
        sharing("i-2ze0gl97vw2", "7606", "1", "192.168.0.73"),
        sharing("i-2ze0gl97vw3", "7606", "1", "192.168.0.71"),
    ),
    (
        booked("one", "i-2ze0gl97vw1", "7606", index="0"),
        booked("half", "i-2ze0gl97vw2", "3803", index="0"),
        booked("whole", "i-2ze0gl97vw3", "7606", index="0"),
    ),
)
_ONE = Cluster((sharing("gpu-1"),), (booked("trainer", index="0"), booked("b", index="0")))
_PENDING = Cluster((sharing("gpu-1", "30", "2"),), (booked("a", index="1"), booked("waits")))
_IDLE = Cluster((sharing("gpu-1"), sharing("gpu-2", "16k", "2", "10.0.0.2")))

CLUSTERS: Final = {
    "one-card": _ONE,
    "many-cards": _MIXED,
    "pending": _PENDING,
    "mib": _MIB,
    "allocations": _ACK,
    "odd": _ODD,
    "far": _FAR,
    "nobody": _IDLE,
    "empty": Cluster(),
    "no-sharing": Cluster((sharing("cpu-1", None, None),)),
    "named": Cluster(_MIXED.nodes, _MIXED.pods, "a-node-with-a-long-name"),
    "named-bare": Cluster(_MIXED.nodes, _MIXED.pods, "c-bare"),
}
"""By name of the golden files."""

ABSENT: Final = Cluster(_ONE.nodes, _ONE.pods, "gpu-9")


def serve(server: ApiServer, cluster: Cluster) -> None:
    """Have a scripted API server play a cluster."""
    server.on("GET /api/v1/nodes", reply(_listed("NodeList", cluster.nodes)))
    for item in cluster.nodes:
        one = item | {"apiVersion": "v1", "kind": "Node"}
        server.on(f"GET /api/v1/nodes/{item['metadata']['name']}", reply(one))
    absent = f'nodes "{cluster.asked}" not found'
    if cluster.asked and not any(
        item["metadata"]["name"] == cluster.asked for item in cluster.nodes
    ):
        said: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
        }
        said |= {"message": absent, "reason": "NotFound", "code": 404}
        server.on(f"GET /api/v1/nodes/{cluster.asked}", reply(said, 404))

    def pods(exchange: Exchange) -> None:
        selected = unquote(exchange.path)
        items = [
            item
            for item in cluster.pods
            if f"status.phase!={item['status']['phase']}" not in selected
        ]
        reply(_listed("PodList", items))(exchange)

    server.on("GET /api/v1/pods", pods)


def _listed(kind: str, items: Sequence[JsonObject]) -> JsonObject:
    metadata = {"resourceVersion": "1"}
    return {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def golden(name: str, *, details: bool) -> Path:
    return FOLDER / f"{name}{'-d' if details else ''}.txt"


def _used() -> list[str]:
    cluster = CLUSTERS["one-card"]
    books = map(read_book, cluster.nodes)
    bookings = [one for item in cluster.pods if (one := read_booking(item)) is not None]
    held = snapshot(cards=(card_row(used_bytes=11611 * MIB),))
    return summary(with_bookings(books, bookings), Holdings({"gpu-1": held})).splitlines()


GPUSHARE_CASES: Final = {"gpushare-used": _used}
