"""What models have needed, on its way to the API server and back."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.concerns.need.concern import NeedStore
from agent.concerns.need.ledger import configmap
from gpufence import names
from gpufence.need import NeedDay, NeedKey, NodeNeed, OwnerNeed, read_need, write_need
from gpufence.quantity import GIB
from kube import JsonObject
from tests.http.agent.builders import NEED, NODE, POLICIES, refusal, settings
from tests.http.kube.builders import client_of
from tests.support.observing import wait_until
from tests.support.servers import ApiServer, cut, reply

READ, REPLACED, MADE = f"GET {NEED}", f"PUT {NEED}", f"POST {POLICIES}"
KEY = NeedKey("team-a", "Deployment", "web", "main", "Tesla T4")
NOW = "2026-11-19T05:06:07Z"


def need(name: str = "web", gibibytes: int = 1) -> NodeNeed:
    day = NeedDay("2026-11-18", gibibytes * GIB)
    return NodeNeed(NODE, (OwnerNeed(KEY._replace(name=name), (day,)),))


def stored(what: NodeNeed, version: str = "7") -> JsonObject:
    return configmap(what, NOW, version)


def damaged() -> JsonObject:
    return stored(need()) | {"data": {names.NEED_KEY: '{"v":1,"node":"other"}'}}


def written(server: ApiServer, key: str, position: int = -1) -> tuple[str, dict[str, int]]:
    """Return the version that a request replaces, and the peaks by owner that it brings."""
    body: Any = server.wait_for(key, 1)[position].json
    found = read_need(body["data"][names.NEED_KEY])
    version = body["metadata"].get("resourceVersion", "")
    return version, {item.key.name: item.days[0].peak_bytes // GIB for item in found.owners}


@contextmanager
def storing(server: ApiServer, **more: Any) -> Iterator[NeedStore]:
    store = NeedStore(client_of(server), settings(**more))
    store.start()
    try:
        yield store
    finally:
        store.stop()


def found(store: NeedStore) -> list[str]:
    """Return the owners that were stored, once that has been read."""
    wait_until(lambda: store.found is not None)
    what = store.found
    assert what is not None
    return [owner.key.name for owner in what.need.owners]


def test_nothing_is_written_over_before_it_is_read(server: ApiServer) -> None:
    """While the API server is away nobody knows what is stored; then it is put together."""
    server.on(READ, refusal(500), cut(), reply(stored(need("old"))))
    server.on(REPLACED, reply(stored(need(), "8")))
    with storing(server) as store:
        store.store(need())
        first = written(server, REPLACED)

    assert 3 == len(server.seen(READ))
    assert ("7", {"old": 1, "web": 1}) == first


@pytest.mark.parametrize("trouble", ["conflict", "gone"])
def test_what_somebody_else_has_written_is_not_lost(server: ApiServer, trouble: str) -> None:
    """
    After a conflict it is read again, put together and written once more; one that is gone is made
    anew.
    """
    other = reply(stored(need("other", 3), "9")) if trouble == "conflict" else refusal(404)
    server.on(READ, reply(stored(need("old"))), other)
    server.on(
        REPLACED,
        refusal(409, "Conflict") if trouble == "conflict" else refusal(404),
        reply(stored(need(), "10")),
    )
    server.on(MADE, reply(stored(need(), "10"), 201))
    with storing(server) as store:
        found(store)
        store.store(need())
        last = written(server, REPLACED if trouble == "conflict" else MADE)
        if trouble == "conflict":
            server.wait_for(REPLACED, 2)
            last = written(server, REPLACED)
        owners = found(store)

    expected = {"conflict": ("9", {"web": 1, "other": 3}), "gone": ("", {"web": 1})}
    assert expected[trouble] == last
    assert (["other"] if trouble == "conflict" else []) == owners


def test_conflicts_without_end_are_given_up(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """After some attempts the next word has its turn, and the log says why once."""
    server.on(READ, reply(stored(need())))
    server.on(REPLACED, refusal(409, "Conflict"))
    with caplog.at_level(logging.WARNING), storing(server) as store:
        for _ in range(2):
            store.store(need())
            server.wait_for(REPLACED, 3)
        wait_until(lambda: "needs of models: " in caplog.text)

    assert 1 == caplog.text.count("needs of models: ")


def test_who_may_not_read_it_begins_with_nothing(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """
    With the rights of an older version needs are remembered until the agent ends, and the log says
    what helps; rights that come later are used.
    """
    server.on(READ, refusal(403))
    server.on(REPLACED, reply(stored(need(), "8")))
    with caplog.at_level(logging.WARNING), storing(server) as store:
        first = found(store)
        wait_until(lambda: "needs of models: " in caplog.text)
        server.on(READ, reply(stored(need("old"))))
        store.store(need())
        last = written(server, REPLACED)
        wait_until(lambda: found(store) == ["old"])

    assert [] == first
    assert ("7", {"web": 1, "old": 1}) == last
    assert "apply the agent's rights of this version" in caplog.text


@pytest.mark.parametrize("item", [damaged(), {"metadata": {"resourceVersion": "7"}}])
def test_what_no_agent_wrote_is_written_anew(
    server: ApiServer, caplog: pytest.LogCaptureFixture, item: JsonObject
) -> None:
    """A forged or damaged object neither stops the agent nor gets into what it knows."""
    server.on(READ, reply(item))
    server.on(REPLACED, reply(stored(need(), "8")))
    with caplog.at_level(logging.WARNING), storing(server) as store:
        first = found(store)
        store.store(need())
        last = written(server, REPLACED)

    assert ([], ("7", {"web": 1})) == (first, last)
    assert "written anew" in caplog.text


def test_a_hostile_object_costs_no_more_than_an_agent_keeps(server: ApiServer) -> None:
    """Of thousands of owners that somebody wrote as many are taken as an agent would keep."""
    day = NeedDay("2026-11-18", GIB)
    crowd = tuple(OwnerNeed(KEY._replace(name=f"w{n}"), (day,)) for n in range(4000))
    forged = stored(need())
    forged["data"][names.NEED_KEY] = write_need(NodeNeed(NODE, crowd))
    server.on(READ, reply(forged))
    with storing(server) as store:
        owners = found(store)

    assert 512 == len(owners)


def test_an_agent_that_never_began_ends(server: ApiServer) -> None:
    """Closing what was never started, or has not read anything yet, is no trouble."""
    NeedStore(client_of(server), settings()).stop()
    server.on(READ, refusal(500))
    with storing(server) as store:
        server.wait_for(READ, 2)
        nothing = store.found

    assert nothing is None
