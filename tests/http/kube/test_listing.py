"""How pages become one list, and what is never taken for a list."""

import pytest

from kube import BadReplyError, Client, GoneError
from tests.http.kube.builders import PODS, pod, pods, status
from tests.support.api_server import ApiServer, reply


def test_lists_put_pages_together(server: ApiServer, client: Client) -> None:
    """All pages of one list come back as one, with the version of that list."""
    server.on(
        f"GET {PODS}",
        reply(pods(pod("a"), pod("b"), token="next&1")),
        reply(pods(pod("c"))),
    )

    listing = client.list(PODS, {"labelSelector": "gpu=yes"}, page_size=2)

    first, second = (seen.query for seen in server.seen(f"GET {PODS}"))
    assert ["a", "b", "c"] == [item["metadata"]["name"] for item in listing.items]
    assert "10" == listing.resource_version
    assert {"labelSelector": "gpu=yes", "limit": "2"} == first
    assert {"labelSelector": "gpu=yes", "limit": "2", "continue": "next&1"} == second


def test_a_list_that_expires_between_pages_begins_anew(server: ApiServer, client: Client) -> None:
    """After 410 in the middle, no object of the abandoned list is left."""
    server.on(
        f"GET {PODS}",
        reply(pods(pod("deleted-meanwhile"), token="t")),
        reply(status(410, "Expired"), 410),
        reply(pods(pod("a"), version="20", token="u")),
        reply(pods(pod("b"), version="20")),
    )

    listing = client.list(PODS, page_size=1)

    assert ["a", "b"] == [item["metadata"]["name"] for item in listing.items]
    assert "20" == listing.resource_version


def test_a_list_that_always_expires_is_given_up(server: ApiServer, client: Client) -> None:
    """Paging that cannot keep up ends in an error instead of a loop."""
    first, second = reply(pods(pod("a"), token="t")), reply(status(410, "Expired"), 410)
    server.on(f"GET {PODS}", first, second, first, second, first, second)

    with pytest.raises(GoneError):
        client.list(PODS)

    assert len(server.seen(f"GET {PODS}")) == 6


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "Pod", "metadata": {"resourceVersion": "1"}},
        {"items": [], "metadata": {}},
        {"items": [1], "metadata": {"resourceVersion": "1"}},
        {"items": {}, "metadata": {"resourceVersion": "1"}},
        {"items": []},
    ],
)
def test_what_is_no_list_is_not_taken_for_an_empty_one(
    server: ApiServer, client: Client, body: dict[str, object]
) -> None:
    """An odd answer never looks like a collection without objects."""
    server.on(f"GET {PODS}", reply(body))

    with pytest.raises(BadReplyError):
        client.list(PODS)


def test_an_empty_list_in_gos_spelling_is_empty(server: ApiServer, client: Client) -> None:
    """A list whose items are null has none."""
    server.on(f"GET {PODS}", reply({**pods(), "items": None}))

    assert [] == client.list(PODS).items
