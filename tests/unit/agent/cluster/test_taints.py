"""What is written of cards that take no more claims."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.cluster.settings import ClusterSettings
from agent.cluster.taint_writer import PublishedDevice, TaintWriter, published_devices, rule_name
from agent.model.taint import Disorder
from gpufence import names
from gpufence.shape import Object
from kube import ClientSettings, connect, group
from tests.support.api_server import ApiServer, reply
from tests.support.observing import wait_until

SLICES = group(names.RESOURCE_GROUP, "resourceslices")
RULES = group(names.RESOURCE_GROUP, "devicetaintrules")
RULE = f"{RULES}/gpufence-node-1-gpu-0"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "u"}
GONE = reply({"kind": "Status", "reason": "NotFound", "message": "none"}, 404)
DONE = reply({})
TWICE, NONE = Disorder.OVERCOMMITTED, Disorder.NONE


def published(pool: str = "node-1", name: str = "gpu-0", generation: int = 1) -> Object:
    device = {
        "name": name,
        "attributes": {"uuid": {"string": "GPU-0"}},
        "capacity": {"memory": {"value": "15Gi"}},
    }
    spec = {
        "driver": names.DRA_DRIVER,
        "nodeName": "node-1",
        "pool": {"name": pool, "generation": generation},
        "devices": [device],
    }
    owners = [{**OWNER, "controller": True}, {"kind": "Pod", "name": "other"}]
    return {"metadata": {"name": "s", "ownerReferences": owners}, "spec": spec}


@contextmanager
def writing(server: ApiServer) -> Iterator[TaintWriter]:
    client = connect(ClientSettings(server=server.url))
    writer = TaintWriter(ClusterSettings(node="node-1", taints=True))
    writer.start(client, client)
    try:
        yield writer
    finally:
        writer.stop()
        client.close()


def test_a_card_is_tainted_and_taken_back_by_its_devices_name() -> None:
    """
    The rule selects that one device and goes with its Node; the same word twice is written once.
    """
    with ApiServer() as server:
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        server.on(f"POST {RULES}", DONE)
        server.on(f"DELETE {RULE}", DONE)
        with writing(server) as writer:
            writer.taint({"GPU-0": TWICE, "GPU-unpublished": TWICE})
            (made,) = server.wait_for(f"POST {RULES}", 1)
            writer.taint({"GPU-0": TWICE})
            writer.taint({"GPU-0": NONE})
            server.wait_for(f"DELETE {RULE}", 1)

        assert 1 == len(server.seen(f"POST {RULES}"))
    assert {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": "gpufence-node-1-gpu-0",
            "labels": {"app.kubernetes.io/managed-by": "gpufence-agent"},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "node-1", "device": "gpu-0"},
            "taint": {
                "key": "gpufence.io/disorder",
                "value": "overcommitted",
                "effect": "NoSchedule",
            },
        },
    } == made.json


def test_what_does_not_get_through_is_tried_again() -> None:
    """
    An API server that is away, has no such rules, or forbids them, is asked ever more seldom; one
    that has the rule already is as well.
    """
    refused = reply({"kind": "Status", "reason": "Forbidden", "message": "no"}, 403)
    exists = reply({"kind": "Status", "reason": "AlreadyExists", "message": "there"}, 409)
    with ApiServer() as server:
        server.on(f"GET {SLICES}", reply({}, 503), reply({"items": [published()]}))
        server.on(f"POST {RULES}", GONE, exists)
        server.on(f"DELETE {RULE}", refused, GONE)
        with writing(server) as writer:
            writer.taint({"GPU-0": TWICE})
            server.wait_for(f"POST {RULES}", 2)
            writer.taint({"GPU-0": NONE})
            server.wait_for(f"DELETE {RULE}", 2)
            wait_until(lambda: len(server.seen(f"GET {SLICES}")) == 5)


def test_a_card_that_is_published_later_is_tainted_then() -> None:
    """Its driver may start after the agent; a card in order needs no second look."""
    with ApiServer() as server:
        server.on(f"GET {SLICES}", reply({"items": []}), reply({"items": [published()]}))
        server.on(f"POST {RULES}", DONE)
        with writing(server) as writer:
            writer.taint({"GPU-0": TWICE, "GPU-never": NONE})
            server.wait_for(f"POST {RULES}", 1)

        assert 2 == len(server.seen(f"GET {SLICES}"))


def test_at_rest_nothing_is_asked() -> None:
    """A node whose cards nobody has decided about yet costs the API server nothing."""
    with ApiServer() as server, writing(server) as writer:
        writer.taint({})

    assert [] == server.seen(f"GET {SLICES}")


def test_a_device_is_known_by_its_pool_and_name() -> None:
    """Pools have slashes in their names, and slices of others or without owners are no matter."""
    plain = {**published("a/b"), "metadata": {}}
    foreign = {"spec": {"driver": "nic.example.com"}}

    assert {"GPU-0": PublishedDevice("a/b", "gpu-0", ())} == published_devices([plain, foreign])


@pytest.mark.parametrize("order", [1, -1])
def test_a_device_of_an_older_generation_is_gone(order: int) -> None:
    """The scheduler ignores it, so that a rule for it would keep no claim away."""
    slices = [published(name="old"), published(name="new", generation=2)][::order]

    assert ["new"] == [item.device for item in published_devices(slices).values()]


def test_a_rule_whose_name_would_be_too_long_ends_in_a_hash() -> None:
    """Two devices of a node with the longest name have two rules."""
    found = [rule_name("n" * 253, device) for device in ("gpu-0", "gpu-1")]

    assert [253, 253] == [len(name) for name in found]
    assert found[0] != found[1]
