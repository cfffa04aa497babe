"""How often the claims of pods are asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent.cluster.claims import ClaimReader
from agent.cluster.settings import ClusterSettings
from gpufence import names
from gpufence.shape import Object
from kube import ClientSettings, JsonObject, connect, group
from tests.support import claims
from tests.support.api_server import ApiServer, reply
from tests.support.builders import container, pod
from tests.support.observing import wait_until

CLAIMS = group(names.RESOURCE_GROUP, "namespaces", "team-a", "resourceclaims")
SLICES = group(names.RESOURCE_GROUP, "resourceslices")
GIVEN = claims.allocated(claims.claim("c"), claims.result(memory="2Gi"))
NOWHERE = reply({"kind": "Status", "reason": "NotFound", "message": "gone"}, 404)


def claiming(uid: str = "uid-1", **status: Any) -> JsonObject:
    raw = pod(claims.claiming(container(), gpu=""), resourceClaims=[claims.by_name("gpu", "c")])
    raw["metadata"]["uid"] = uid
    return raw | {"status": status}


def published() -> Object:
    device = {
        "name": "gpu-0",
        "attributes": {"uuid": {"string": "GPU-0"}},
        "capacity": {"memory": {"value": "15Gi"}},
    }
    pool = {"name": "node-1", "generation": 1}
    spec = {"driver": names.DRA_DRIVER, "nodeName": "node-1", "pool": pool, "devices": [device]}
    return {"metadata": {"name": "s"}, "spec": spec}


@contextmanager
def reading(server: ApiServer, pods: dict[str, JsonObject]) -> Iterator[ClaimReader]:
    client = connect(ClientSettings(server=server.url))
    reader = ClaimReader(ClusterSettings(node="node-1"), lambda: pods)
    reader.start(client)
    try:
        reader.wake()
        yield reader
    finally:
        reader.stop()
        client.close()


def asked(server: ApiServer) -> tuple[int, int]:
    """Count the questions for the claim and for the cards of the node."""
    return len(server.seen(f"GET {CLAIMS}/c")), len(server.seen(f"GET {SLICES}"))


def test_a_claim_that_is_known_is_asked_for_once() -> None:
    """What a pod has got does not change, so that a node at rest asks nothing."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)
            pods["uid-1"] = claiming(phase="Running")
            pods["uid-2"] = pod(container())
            reader.wake()
            wait_until(lambda: asked(server) == (1, 1))

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found


def test_where_only_the_card_is_missing_the_claim_is_not_asked_for_again() -> None:
    """A node whose driver has published nothing yet costs a question for its slices."""
    nothing, all_of_it = reply({"items": []}), reply({"items": [published()]})
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", reply(GIVEN))
        server.on(f"GET {SLICES}", nothing, nothing, all_of_it)
        with reading(server, {"uid-1": claiming()}) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)

        assert (1, 3) == asked(server)


def test_what_is_in_doubt_is_asked_for_again() -> None:
    """A claim that the API server does not show yet is there a moment later."""
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE, reply({}, 500), reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, {"uid-1": claiming()}) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found


def test_a_pod_in_doubt_is_not_asked_about_for_the_changes_of_others() -> None:
    """However often those change, its own turn comes by the clock."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE)
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").found)
            for number in range(20):
                pods["uid-2"] = pod(container(f"c{number}"))
                reader.wake()
            pods["uid-3"] = claiming("uid-3", phase="Succeeded")
            reader.wake()
            wait_until(lambda: "uid-3" in reader.known)

        assert (1, 0) == asked(server)


def test_a_pod_that_has_changed_is_asked_about_at_once() -> None:
    """Its claim may have been made by now."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE, reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").found)
            pods["uid-1"] = claiming(phase="Running")
            reader.wake()
            wait_until(lambda: reader.of_pod("uid-1").cards, seconds=5.0)

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found
