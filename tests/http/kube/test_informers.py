"""Collections that are followed together, those among them that may be missing included."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gpufence.times import Backoff
from kube import ClientSettings
from kube.informers import OUTAGE_SECONDS, SILENCE_SECONDS, Informers, Probing, Store
from kube.watch import Source
from tests.http.kube.builders import PODS, SETTINGS, WATCHING, change, client_of, pod, pods, status
from tests.support.observing import wait_until
from tests.support.servers import Answer, ApiServer, cut, reply, watch

NODES = "/api/v1/nodes"
FARMS = "/apis/example.com/v1/farms"
MISSING = reply(status(404, "NotFound"), 404)
FORBIDDEN = reply(status(403, "Forbidden", "not yours"), 403)
BROKEN = reply(status(500, "InternalError", "nobody converts it"), 500)
OFTEN = Probing(absent_seconds=0.05, retry_seconds=0.05, lost_seconds=0.2)
HOT = replace(WATCHING, backoff=Backoff(0.02, 0.02))


def named(item: dict[str, dict[str, str]]) -> tuple[str, str]:
    return item["metadata"]["name"], item["metadata"]["name"]


def source(path: str) -> Source[tuple[str, str]]:
    return Source(path=path, keep=named)


def kept() -> Store[str]:
    return Store()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with pods and nodes, and without farms."""
    with ApiServer() as running:
        for path, name in ((PODS, "p"), (NODES, "n"), (FARMS, "f")):
            running.on(f"GET {path}", reply(pods(pod(name))))
            running.on(f"WATCH {path}", watch(then="hang"))
        yield running


@contextmanager
def informers(
    server: ApiServer, *expected: str, settings: ClientSettings = SETTINGS
) -> Iterator[Informers]:
    with client_of(server, settings) as client:
        made = Informers(client, HOT, expected=expected, probing=OFTEN)
        yield made
        made.stop()


def test_what_is_followed_is_synced_once_all_of_it_was_read(server: ApiServer) -> None:
    """Before that the names stand in the trouble of those that are missing."""
    server.on(f"GET {NODES}", BROKEN)
    found: Store[str] = Store()
    with informers(server) as made:
        made.follow("pods", source(PODS), found)
        made.follow("nodes", source(NODES), kept())
        made.start()
        wait_until(lambda: made.state("pods").synced and made.state("nodes").failing)
        before = made.health()
        server.on(f"GET {NODES}", reply(pods()))
        wait_until(lambda: made.health().fresh)
        after = made.health()

    assert {"p": "p"} == found.items
    assert (False, False) == (before.synced, before.fresh)
    assert "nobody converts it; nodes have not been read yet" in before.trouble
    assert (True, "") == (after.synced, after.trouble)
    assert after.silence_seconds is not None
    assert 60 > after.silence_seconds >= 0


def test_nothing_is_synced_before_what_is_expected_is_followed(server: ApiServer) -> None:
    """A collection can be followed later, by another account, and is waited for until then."""
    with informers(server, "pods", "nodes") as made, client_of(server) as other:
        made.follow("pods", source(PODS), kept())
        made.start()
        wait_until(lambda: made.state("pods").synced)
        before = made.health()
        made.follow("nodes", source(NODES), kept(), client=other)
        wait_until(lambda: made.health().synced)

    assert (False, "nodes have not been read yet") == (before.synced, before.trouble)
    with pytest.raises(ValueError, match="pods is followed already"):
        made.follow("pods", source(PODS), kept())


def test_what_is_known_is_stale_after_an_outage_or_a_silence(server: ApiServer) -> None:
    """A watch that fails is believed for seconds, one on which nothing comes for minutes."""
    with informers(server) as made:
        made.follow("pods", source(PODS), kept())
        made.start()
        wait_until(lambda: made.health().fresh)
        now = time.monotonic()
        quiet = [made.health(now + seconds).fresh for seconds in (SILENCE_SECONDS / 2, 1000)]
        server.on(f"WATCH {PODS}", cut())
        server.on(f"GET {PODS}", cut())
        made.end("pods")
        made.follow("pods", source(PODS), kept())
        wait_until(lambda: made.state("pods").failing)

        assert [True, False] == quiet
        assert not made.health().fresh


def test_a_watch_that_fails_is_trusted_for_as_long_as_a_server_takes_to_hand_over(
    server: ApiServer,
) -> None:
    """What is known stays known, and is out of date five seconds after the last byte."""
    server.on(f"WATCH {PODS}", watch(change("ADDED", pod("q", "11")), then="cut"), cut())
    store: Store[str] = Store()
    with informers(server) as made:
        made.follow("pods", source(PODS), store)
        made.start()
        wait_until(lambda: made.state("pods").failing and "q" in store.items)
        heard = made.state("pods").last_contact or 0.0
        fresh = [made.health(heard + more).fresh for more in (OUTAGE_SECONDS - 1, SILENCE_SECONDS)]
        trouble = made.health().trouble

    assert [True, False] == fresh
    assert PODS in trouble
    assert {"p", "q"} == store.items.keys()


def test_what_is_ended_counts_no_longer(server: ApiServer) -> None:
    """A kind that is gone from the cluster makes nothing stale."""
    server.on(f"GET {FARMS}", BROKEN)
    with informers(server) as made:
        made.follow("pods", source(PODS), kept())
        made.follow("farms", source(FARMS), kept())
        made.start()
        wait_until(lambda: made.state("pods").synced)
        before = made.health().synced
        made.end("farms")

        assert (False, True) == (before, made.health().synced)
        assert {"pods"} == made.silences().keys()


@pytest.mark.parametrize(
    ("answer", "said"), [(MISSING, "404"), (FORBIDDEN, "403")], ids=["missing", "forbidden"]
)
def test_an_optional_collection_comes(server: ApiServer, answer: Answer, said: str) -> None:
    """It is followed once it is there and ours to read, and stands in nothing's way before."""
    server.on(f"GET {FARMS}", answer)
    store: Store[str] = Store()
    with informers(server) as made:
        made.follow("farms", source(FARMS), store, optional=True)
        made.start()
        wait_until(lambda: made.absent("farms"))
        before, settled = made.health(), made.settled("farms")
        why = str(made.absent("farms"))
        server.on(f"GET {FARMS}", reply(pods(pod("f"))))
        wait_until(lambda: "f" in store.items and made.health().fresh)

        assert made.absent("farms") is None

    assert said in why
    assert (True, True, True) == (settled, before.synced, before.fresh)


@pytest.mark.parametrize("answer", [MISSING, FORBIDDEN], ids=["missing", "forbidden"])
def test_an_optional_collection_goes(server: ApiServer, answer: Answer) -> None:
    """What was known stays known until the server says that there is nothing any more."""
    server.on(f"WATCH {FARMS}", cut())
    store: Store[str] = Store()
    with informers(server) as made:
        made.follow("farms", source(FARMS), store, optional=True)
        made.start()
        wait_until(lambda: "f" in store.items)
        server.on(f"GET {FARMS}", BROKEN)
        server.wait_for(f"GET {FARMS}", len(server.seen(f"GET {FARMS}")) + 2)
        known, absent = dict(store.items), made.absent("farms")
        server.on(f"GET {FARMS}", answer)
        wait_until(lambda: made.absent("farms"))

    assert ({"f": "f"}, None) == (known, absent)
    assert {} == store.items


def test_a_vital_optional_collection_that_fails_is_one_of_which_nothing_is_known(
    server: ApiServer,
) -> None:
    """All else that is vital waits for the answer; one that is not vital holds up nothing."""
    server.on(f"GET {FARMS}", BROKEN)
    server.on(f"GET {NODES}", BROKEN)
    with informers(server) as made:
        made.follow("farms", source(FARMS), kept(), optional=True)
        made.follow("nodes", source(NODES), kept(), optional=True, vital=False)
        made.start()
        wait_until(lambda: made.state("farms").failing and made.state("nodes").failing)
        before = made.health()
        server.on(f"GET {FARMS}", MISSING)
        wait_until(lambda: made.health().synced)

        assert not before.synced
        assert "nobody converts it" in before.trouble
        assert "nobody converts it" in (made.state("nodes").last_error or "")
        wait_until(lambda: made.settled("nodes"))


def test_one_thread_asks_for_all_optional_collections(server: ApiServer) -> None:
    """However many there are, and whenever each was begun to be followed."""
    paths = [f"/apis/example.com/v1/kind{number}" for number in range(20)]
    for path in paths:
        server.on(f"GET {path}", MISSING)
    with informers(server) as made:
        made.start()
        for path in paths:
            made.follow(path, source(path), kept(), optional=True)
        wait_until(lambda: all(made.absent(path) for path in paths))
        names = [each.name for each in threading.enumerate()]

        assert made.health().synced
    assert 1 == names.count("optional collections")
