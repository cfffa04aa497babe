"""The ConfigMap of a node's needs on a real API server: written, found again, and nobody else's."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from agent.concerns.need.concern import NeedStore
from agent.concerns.need.ledger import configmap
from gpufence import names
from gpufence.need import (
    NeedDay,
    NeedKey,
    NodeNeed,
    OwnerNeed,
    need_configmap,
)
from gpufence.need.codec import MOST_DAYS, MOST_OWNERS
from gpufence.quantity import GIB
from kube import Client, ForbiddenError, JsonObject, PatchType, core
from tests.integration.agent.cluster.site import ClusterSite, wait_for

NOW = "2026-11-19T05:06:07Z"
MIB = 2**20
LONG_NAME = "n" + "a" * 251 + "z"  # as long as a name may be


def need(node: str, *names_of: str) -> NodeNeed:
    day = NeedDay("2026-11-18", GIB)
    keys = (NeedKey("team-a", "Deployment", name, "main", "Tesla T4") for name in names_of)
    return NodeNeed(node, tuple(OwnerNeed(key, (day,)) for key in keys))


def maps(site: ClusterSite, *name: str) -> str:
    return core("namespaces", site.system, "configmaps", *name)


def owners(store: NeedStore) -> list[str]:
    found = wait_for(lambda: store.found)
    return [owner.key.name for owner in found.need.owners]


def is_denied(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except ForbiddenError as error:
        return "may not write ConfigMap" in error.failure.message
    return False


def forged(node: str, version: str = "") -> JsonObject:
    return configmap(need(node, "forged"), NOW, version)


def test_what_one_agent_stores_the_next_one_finds(guarded: ClusterSite) -> None:
    """An agent makes the ConfigMap of its node, replaces it, and the next one begins with it."""
    with guarded.needs() as store:
        first = owners(store)
        store.store(need(guarded.node, "a"))
        path = maps(guarded, need_configmap(guarded.node))
        wait_for(lambda: guarded.exists(path) or None)
        store.store(need(guarded.node, "a", "b"))  # written at the end at the latest
    made = guarded.admin.get(path)
    with guarded.needs() as store:
        second = owners(store)
    guarded.admin.delete(path)

    assert ([], ["a", "b"]) == (first, second)
    assert names.NEED_LABEL == made["metadata"]["labels"]["app.kubernetes.io/name"]


WISHES: dict[str, Callable[[Client, ClusterSite, str], object]] = {
    "make another node's": lambda client, site, _: client.post(
        maps(site), forged(f"other-{uuid4().hex[:8]}")
    ),
    "make another node's records": lambda client, site, _: client.post(
        maps(site), {"metadata": {"name": f"{names.WHY_PREFIX}other"}}
    ),
    "replace another node's": lambda client, site, other: client.put(
        maps(site, need_configmap(other)), forged(other)
    ),
    "turn the kill switch": lambda client, site, _: client.put(
        maps(site, names.POLICY_CONFIGMAP),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.POLICY_CONFIGMAP},
            "data": {names.POLICY_MAX_MODE: "observe"},
        },
    ),
    "have one named for it": lambda client, site, _: client.post(
        maps(site), {"metadata": {"generateName": f"{names.NEED_PREFIX}{site.node}"}}
    ),
    "make one that begins alike": lambda client, site, _: client.post(
        maps(site), forged(f"{site.node}-2")
    ),
}


@pytest.mark.parametrize("wish", WISHES)
def test_an_agent_writes_no_other_configmap(guarded: ClusterSite, wish: str) -> None:
    """With the token of one node's agent nobody writes another node's need, nor the kill switch."""
    other = f"node-{uuid4().hex[:8]}"
    guarded.admin.post(maps(guarded), configmap(need(other, "true"), NOW, ""))
    with guarded.client() as account:
        denied = is_denied(lambda: WISHES[wish](account, guarded, other))
    kept = guarded.admin.get(maps(guarded, need_configmap(other)))

    assert denied
    assert "forged" not in kept["data"][names.NEED_KEY]


def test_a_patch_is_no_way_round(guarded: ClusterSite) -> None:
    """An agent has no right to patch, delete or list any ConfigMap."""
    path = maps(guarded, need_configmap(guarded.node))
    with guarded.client() as account:
        for ask in (
            lambda: account.patch(path, {"data": {}}, PatchType.MERGE),
            lambda: account.delete(path),
            lambda: account.list(maps(guarded)),
        ):
            with pytest.raises(ForbiddenError):
                ask()


def test_a_node_with_the_longest_name_has_its_own(guarded: ClusterSite) -> None:
    """
    A name that is too long for a ConfigMap's ends in a hash, by which the policy knows its node.
    """
    guarded.add_node(LONG_NAME)
    with guarded.client(LONG_NAME) as account:
        made = account.post(maps(guarded), configmap(need(LONG_NAME, "a"), NOW, ""))
        denied = is_denied(lambda: account.post(maps(guarded), forged(guarded.node)))
    guarded.admin.delete(core("nodes", LONG_NAME))

    assert 253 == len(made["metadata"]["name"])
    assert denied


def test_as_much_as_is_ever_kept_is_taken(guarded: ClusterSite) -> None:
    """
    512 owners with long names, on fourteen days on which all happened that can, make an object that
    the API server takes.
    """
    amounts = [name for name in NeedDay._fields if name.endswith("_bytes")]
    counts = ("pods", "processes", "evictions", "started", "shares")
    full: dict[str, Any] = dict.fromkeys(amounts, 79_999 * MIB) | dict.fromkeys(counts, 123)
    full |= {"held_seconds": 86_399.0, "capped": True, "driver_peak": True}
    days = tuple(NeedDay(f"2026-11-{number:02}", **full) for number in range(1, MOST_DAYS + 1))
    crowd = tuple(
        OwnerNeed(NeedKey("n" * 63, "Deployment", f"{n:0200}", "c" * 63, "NVIDIA H100"), days)
        for n in range(MOST_OWNERS)
    )
    path = maps(guarded, need_configmap(guarded.node))
    with guarded.needs() as store:
        owners(store)
        store.store(NodeNeed(guarded.node, crowd))
        wait_for(lambda: guarded.exists(path) or None)
    made = guarded.admin.get(path)
    guarded.admin.delete(path)

    assert 2**20 > len(made["data"][names.NEED_KEY]) > 2**19
