"""Who is answered by the page's server."""

from http import HTTPStatus

import pytest

from kubectl_gpufence.verbs.dashboard.access import (
    PageAddress,
    PageRequest,
    PageTarget,
    Refused,
    judge,
)

DOOR = PageAddress("a-token", 8765)
HERE = "127.0.0.1:8765"


def asked(target: str = "/a-token/", method: str = "GET", **headers: str) -> PageTarget | Refused:
    """Judge a request to the right host, unless a header says otherwise; underscores are dashes."""
    given = {"host": HERE, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return judge(
        PageRequest(method, target, {name: (value,) for name, value in given.items()}), DOOR
    )


def refusal(*arguments: str, **headers: str) -> HTTPStatus | None:
    answer = asked(*arguments, **headers)
    return answer.status if isinstance(answer, Refused) else None


@pytest.mark.parametrize("host", [HERE, "localhost:8765"])
def test_whoever_knows_the_token_gets_the_page(host: str) -> None:
    """By the address of this machine itself, or by its name."""
    assert PageTarget(page=True) == asked(host=host)
    assert PageTarget(page=False) == asked("/a-token/state", host=host)
    assert PageTarget(page=False, after=12) == asked("/a-token/state?after=12", host=host)


@pytest.mark.parametrize(
    "host",
    ["evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", f"{HERE}.evil.example", "[::1]:8765"],
)
def test_other_names_of_this_machine_are_refused(host: str) -> None:
    """A name that somebody else has made lead here is not ours, token or not."""
    assert HTTPStatus.MISDIRECTED_REQUEST == refusal(host=host)


def test_the_port_that_browsers_leave_out() -> None:
    """At port 80 a browser names the host alone."""
    request = PageRequest("GET", "/a-token/", {"host": ("127.0.0.1",)})

    assert PageTarget(page=True) == judge(request, PageAddress("a-token", 80))


def test_a_request_names_one_host() -> None:
    """None or two is no request of a browser."""
    for hosts in ((), (HERE, HERE)):
        answer = judge(PageRequest("GET", "/a-token/", {"host": hosts}), DOOR)

        assert isinstance(answer, Refused)
        assert HTTPStatus.MISDIRECTED_REQUEST == answer.status


@pytest.mark.parametrize(
    "target",
    [
        *("/", "", "/wrong/", "/a-toke/", "/a-token-and-more/", "/a-tokenstate", "*", "/\xfc/"),
        *("//a-token/", "/state", "/?token=a-token", "http://127.0.0.1:8765/a-token/"),
    ],
)
def test_without_the_token_nothing_is_shown(target: str) -> None:
    """Neither the page, nor its state, nor what there is."""
    assert HTTPStatus.UNAUTHORIZED == refusal(target)


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS", "DELETE"])
def test_the_page_is_only_looked_at(method: str) -> None:
    """Whoever does not know the token does not even hear that."""
    assert HTTPStatus.METHOD_NOT_ALLOWED == refusal("/a-token/", method)
    assert HTTPStatus.UNAUTHORIZED == refusal("/", method)


@pytest.mark.parametrize(
    "target", ["/a-token/x", "/a-token/state/", "/a-token/state?after=x", "/a-token/?after=1"]
)
def test_there_is_nothing_else(target: str) -> None:
    """No path leads anywhere but to the page and its state."""
    assert HTTPStatus.NOT_FOUND == refusal(target)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_no_other_site_asks_for_the_state(site: str) -> None:
    """Other ports of this machine are the same site, and other programs."""
    assert HTTPStatus.FORBIDDEN == refusal("/a-token/state", sec_fetch_site=site)
    assert HTTPStatus.FORBIDDEN == refusal(
        "/a-token/state", sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="document"
    )


def test_the_page_itself_asks() -> None:
    """A browser says so of its request."""
    origin = {"origin": f"http://{HERE}"}

    assert None is refusal("/a-token/state", sec_fetch_site="same-origin", sec_fetch_dest="empty")
    assert None is refusal("/a-token/state", **origin)
    assert HTTPStatus.FORBIDDEN == refusal("/a-token/state", origin="null")
    assert HTTPStatus.FORBIDDEN == refusal("/a-token/state", origin="http://localhost:8765")


def test_the_page_is_a_window_of_its_own() -> None:
    """
    Wherever somebody comes from who knows the address; nothing frames it or loads it as something
    else.
    """
    window = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}

    assert None is refusal(sec_fetch_site="none", **window)
    assert None is refusal(sec_fetch_site="cross-site", **window)
    for dest in ("iframe", "embed", "script", "image", "empty"):
        for site in ("cross-site", "same-origin"):
            assert HTTPStatus.FORBIDDEN == refusal(
                sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest=dest
            )
    assert HTTPStatus.FORBIDDEN == refusal(sec_fetch_site="cross-site", sec_fetch_mode="no-cors")
