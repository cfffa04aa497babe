"""
PURE. Who is answered: whoever knows the token, asks by the name of this machine itself, and comes
from the page or from no page at all.

Other programs of this machine can reach the port, and so can every page in its browser: by name, by
address, and by a name of theirs that leads here (DNS rebinding). None of them knows the token, and
what carries it without knowing it is turned away as well.
"""

from __future__ import annotations

import hmac
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STATE: Final = re.compile(r"state(?:\?after=(\d{1,15}))?", re.ASCII)
_NAME: Final = r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"
_OWNER: Final = r"([A-Za-z][A-Za-z0-9]{0,62}/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"
_COLUMNS: Final = r"&columns=(\d{2,3})"
_EXPLAIN: Final = re.compile(rf"explain\?pod={_NAME}/{_NAME}{_COLUMNS}", re.ASCII)
_WHY: Final = re.compile(rf"why\?owner={_NAME}/{_OWNER}{_COLUMNS}", re.ASCII)
_UNNAMED_PORT: Final = 80  # browsers leave it out
_OWN_SITE: Final = frozenset({"same-origin", "none"})


class Refused(NamedTuple):
    """Why a request is not answered."""

    status: HTTPStatus
    text: str


class AskedStory(NamedTuple):
    """A pod, or an owner as `Kind/name`, that is asked about, in lines of so many columns."""

    namespace: str
    name: str
    columns: int

    @property
    def of_owner(self) -> bool:
        return "/" in self.name


class PageTarget(NamedTuple):
    """What is asked for: the page, the story of a pod or owner, or what is new after a look."""

    page: bool
    after: int = 0
    story: AskedStory | None = None


class PageRequest(NamedTuple):
    """A request, as far as it counts; the names of headers are small letters."""

    method: str
    target: str
    headers: Mapping[str, Sequence[str]]


class PageAddress(NamedTuple):
    """What opens the page: its token, and the port by which the browser names this machine."""

    token: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        port = "" if self.port == _UNNAMED_PORT else f":{self.port}"
        return f"127.0.0.1{port}", f"localhost{port}"


def judge(request: PageRequest, door: PageAddress) -> PageTarget | Refused:
    """Return what a request may have."""
    host = request.headers.get("host", ())
    if len(host) != 1 or host[0] not in door.hosts:
        return Refused(HTTPStatus.MISDIRECTED_REQUEST, "this is not the address of the page")
    token, _, path = request.target.removeprefix("/").partition("/")
    if not hmac.compare_digest(token.encode(), door.token.encode()):
        text = "open the whole address that `kubectl gpufence dashboard` has printed"
        return Refused(HTTPStatus.UNAUTHORIZED, text)
    if request.method != "GET":
        return Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this page is only looked at")
    wish = _wish(path)
    if wish is None:
        return Refused(HTTPStatus.NOT_FOUND, "there are the page, its state, and its pods' stories")
    if not _from_here(request, f"http://{host[0]}", page=wish.page):
        return Refused(HTTPStatus.FORBIDDEN, "another site has no business here")
    return wish


def _wish(path: str) -> PageTarget | None:
    if not path:
        return PageTarget(page=True)
    if state := _STATE.fullmatch(path):
        return PageTarget(page=False, after=int(state[1] or 0))
    if asked := _EXPLAIN.fullmatch(path) or _WHY.fullmatch(path):
        return PageTarget(page=False, story=AskedStory(asked[1], asked[2], int(asked[3])))
    return None


def _from_here(request: PageRequest, origin: str, *, page: bool) -> bool:
    """
    Return whether no other site asks. The page may be come to from anywhere, as a whole window: who
    leads there has been given the token, and sees nothing of it.
    """
    if any(item != origin for item in request.headers.get("origin", ())):
        return False
    sites = request.headers.get("sec-fetch-site", ())
    if all(site in _OWN_SITE for site in sites):
        return not page or _is(request, "sec-fetch-dest", "document")
    return (
        page
        and bool(sites)
        and _is(request, "sec-fetch-mode", "navigate")
        and _is(request, "sec-fetch-dest", "document")
    )


def _is(request: PageRequest, header: str, value: str) -> bool:
    """Return whether a header says this, or nothing, as in browsers that do not know it."""
    return all(item == value for item in request.headers.get(header, ()))
