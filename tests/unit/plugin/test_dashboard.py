"""Who gets the page of the dashboard, and the hour that it remembers; its values are goldens."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB
from kubectl_gpufence.pods import SeenEvent, read_event
from kubectl_gpufence.verbs.dashboard import model as kept
from kubectl_gpufence.verbs.dashboard.access import (
    AskedStory,
    PageAddress,
    PageRequest,
    PageTarget,
    Refused,
    judge,
)
from kubectl_gpufence.verbs.dashboard.episodes import MOST_EPISODES
from kubectl_gpufence.verbs.dashboard.model import (
    HOUR_SECONDS,
    STEP_SECONDS,
    HourHistory,
    page_model,
    shares_of_cards,
    shares_of_pods,
)
from tests.support.plugin import agent, card_row, cluster, pod_row, seen_pod, snapshot, use_row

DOOR = PageAddress("a-token", 8765)
HERE = "127.0.0.1:8765"
POD = "/a-token/explain?pod=team-a/trainer-0.x&columns=48"
OWNER = "/a-token/why?owner=team-a/Deployment/worker&columns=48"
STATE = "/a-token/state"
WINDOW = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
MISDIRECTED, GUESSED = HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.UNAUTHORIZED
ABSENT, FOREIGN = HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN


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
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/a-token/", PageTarget(page=True)),
        (STATE, PageTarget(page=False)),
        (f"{STATE}?after=12", PageTarget(page=False, after=12)),
        (POD, PageTarget(page=False, story=AskedStory("team-a", "trainer-0.x", 48))),
        (OWNER, PageTarget(page=False, story=AskedStory("team-a", "Deployment/worker", 48))),
    ],
)
def test_the_token_opens_the_page(target: str, expected: PageTarget, host: str) -> None:
    """By the address of this machine itself, or by its name: page, state and stories."""
    found = asked(target, host=host)

    assert expected == found
    assert (target == OWNER) == bool(expected.story and expected.story.of_owner)


@pytest.mark.parametrize(
    "host",
    ["evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", f"{HERE}.evil.example", "[::1]:8765"],
)
def test_other_names_of_this_machine_are_refused(host: str) -> None:
    """A name that somebody else has made lead here is not ours, token or not."""
    assert MISDIRECTED == refusal(host=host)


def test_a_request_names_one_host() -> None:
    """None or two is no request of a browser; at port 80 a browser names the host alone."""

    def of(*hosts: str, port: int = 8765) -> PageTarget | Refused:
        return judge(PageRequest("GET", "/a-token/", {"host": hosts}), PageAddress("a-token", port))

    assert [MISDIRECTED] * 2 == [
        answer.status for answer in (of(), of(HERE, HERE)) if isinstance(answer, Refused)
    ]
    assert PageTarget(page=True) == of("127.0.0.1", port=80)


@pytest.mark.parametrize(
    "target",
    [
        *("/", "", "/wrong/", "/a-toke/", "/a-token-and-more/", "/a-tokenstate", "*", "/\xfc/"),
        *("//a-token/", "/state", "/?token=a-token", "http://127.0.0.1:8765/a-token/"),
        *(each.replace("a-token", "b-token") for each in (POD, OWNER)),
    ],
)
def test_without_the_token_nothing_is_shown(target: str) -> None:
    """Neither the page, nor its state, nor what there is, nor which method would be allowed."""
    assert [GUESSED] * 2 == [refusal(target, method) for method in ("GET", "POST")]


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS", "DELETE"])
def test_the_page_is_only_looked_at(method: str) -> None:
    """The token opens it for reading alone."""
    assert HTTPStatus.METHOD_NOT_ALLOWED == refusal("/a-token/", method)


@pytest.mark.parametrize(
    "target",
    [
        *("x", "state/", "state?after=x", "?after=1", "explain", "explain?pod=team-a/trainer-0"),
        *(
            f"explain?pod={pod}&columns=80"
            for pod in ("trainer-0", "a/-x", "a/x-", "a/b/c", "a/%3Cimg%3E", "A/B")
        ),
        *(
            f"why?owner=team-a/{owner}&columns=48"
            for owner in ("-x/worker", "Deployment/-x", "worker", "a/b/c", "Deployment/%2e")
        ),
    ],
)
def test_there_is_nothing_else(target: str) -> None:
    """No path leads anywhere but to the page, its state, and stories of pods and owners."""
    assert ABSENT == refusal(f"/a-token/{target}")


@pytest.mark.parametrize(
    ("target", "headers", "expected"),
    [
        *((each, {"sec_fetch_site": "same-site"}, FOREIGN) for each in (STATE, POD, OWNER)),
        (STATE, {"sec_fetch_site": "cross-site"}, FOREIGN),
        *((STATE, {"sec_fetch_site": x, **WINDOW}, FOREIGN) for x in ("same-site", "cross-site")),
        (STATE, {"sec_fetch_site": "same-origin", "sec_fetch_dest": "empty"}, None),
        (STATE, {"origin": f"http://{HERE}"}, None),
        *((STATE, {"origin": x}, FOREIGN) for x in ("null", "http://localhost:8765")),
        *(("/a-token/", {"sec_fetch_site": x, **WINDOW}, None) for x in ("none", "cross-site")),
        ("/a-token/", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, FOREIGN),
        *(
            ("/a-token/", {**WINDOW, "sec_fetch_site": site, "sec_fetch_dest": dest}, FOREIGN)
            for site in ("cross-site", "same-origin")
            for dest in ("iframe", "embed", "script", "image", "empty")
        ),
    ],
)
def test_no_other_site_reads_or_frames_the_page(
    target: str, headers: dict[str, str], expected: HTTPStatus | None
) -> None:
    """State and stories are asked for by the page itself; the page is a window of its own."""
    assert expected == refusal(target, **headers)


FULL = {"gpu-1/GPU-0": 500}


def remembered(*points: tuple[int, float, dict[str, int | None]]) -> HourHistory:
    history = HourHistory()
    for number, at, shares in points:
        history.add(number, at, shares)
    return history


def test_points_are_as_long_ago_as_they_are() -> None:
    """What was unknown is null; an open page is told later points alone, and one is due in time."""
    odd = {"gpu-1/GPU-0": None, "gpu-1/GPU-1": 7, "gpu-1/GPU-2": None}
    history = remembered((1, 100.0, {**FULL}), (3, 110.0, odd))
    lines = {"gpu-1/GPU-0": [500, None], "gpu-1/GPU-1": [None, 7]}

    assert {"ago": [20.0, 10.0], "lines": lines} == history.since(0, 120.0)
    assert {"ago": [0.0], "lines": {"gpu-1/GPU-1": [7]}} == history.since(1, 110.0)
    assert {"ago": [], "lines": {}} == history.since(3, 110.0)
    assert [False, True] == [history.is_due(at) for at in (119.0, 120.0)]
    assert HourHistory().is_due(0.0)


def test_an_hour_is_remembered() -> None:
    """However long the page is open, and nothing of lines that are gone for that long."""
    history = remembered((0, 0.0, {"gone": 1, **FULL}))
    for number in range(1, 1000):
        history.add(number, number * STEP_SECONDS, FULL)
    known = history.since(0, 999 * STEP_SECONDS)
    ago = known["ago"]

    assert isinstance(ago, list)
    assert (HOUR_SECONDS / STEP_SECONDS, HOUR_SECONDS - STEP_SECONDS) == (len(ago), ago[0])
    assert {"gpu-1/GPU-0": [500] * 360} == known["lines"]


def test_lines_that_are_gone_make_room(monkeypatch: Any) -> None:
    """There are never more lines than may be kept, and none that is there is lost."""
    monkeypatch.setattr(kept, "MOST_LINES", 3)
    history = remembered((1, 0.0, {"a": 1, "b": 1}), (2, 10.0, {"b": 2, "c": 2, "d": 2}))
    full = history.since(0, 0.0)["lines"]
    history.add(3, 20.0, {"b": 3, "c": 3, "d": 3, "e": 3})

    assert {"b": [1, 2], "c": [None, 2], "d": [None, 2]} == full
    assert {"b": [1, 2, 3], "c": [None, 2, 3], "d": [None, 2, 3]} == history.since(0, 0.0)["lines"]


SIZED = (card_row(used_bytes=4 * GIB, total_bytes=16 * GIB),)
OVER = use_row(3 * GIB, limit_bytes=2 * GIB)


@pytest.mark.parametrize(
    ("uses", "changes", "card", "pod"),
    [
        ((OVER,), {"cards": SIZED}, 250, {"0": 1500}),
        ((use_row(4 * GIB, limit_bytes=None),), {"cards": SIZED}, 250, {"0": 250}),
        ((use_row(None),), {"cards": SIZED}, 250, {"0": None}),
        ((OVER,), {"cards": SIZED, "stale_seconds": 999.0}, None, {"0": None}),
        ((), {"cards": (card_row(total_bytes=0),)}, None, {}),
        ((use_row(GIB, limit_bytes=None, card="GPU-9"),), {"cards": SIZED}, 250, {"?": None}),
    ],
    ids=["over", "no limit", "unread", "stale", "nothing held", "unknown card"],
)
def test_shares_are_known_while_their_sample_is_fresh(
    uses: Any, changes: dict[str, Any], card: int | None, pod: dict[str, int | None]
) -> None:
    """A pod is measured by its limit or by its card, a card by its size, in thousandths."""
    row = pod_row()._replace(uses=uses)
    found = replace(cluster(agents=(agent(snapshot(row)._replace(**changes)),)), pods=())

    assert {"gpu-1/GPU-0": card} == shares_of_cards(found)
    assert {f"{row.uid}/{on}": share for on, share in pod.items()} == shares_of_pods(found, "")
    assert {} == shares_of_pods(replace(cluster(), pods=(seen_pod(),)), "")


def test_episodes_are_the_newest_and_harmless() -> None:
    """Some of hundreds are shown, each a line of bounded length; what is no Event is refused."""
    many = [
        SeenEvent("2026-01-02T03:04:04Z", f"R{n}", 1, "\x1b[2J" + "y" * 2000, "a/Pod/b")
        for n in range(300)
    ]
    newest = SeenEvent("2026-01-02T03:04:05Z", "Last", 1, "", "a/Pod/b")
    episodes: Any = page_model(cluster(), "", (*many, newest))["episodes"]

    assert (MOST_EPISODES, "Last") == (len(episodes), episodes[0]["reason"])
    assert (True, 1003) == (episodes[1]["message"].startswith("?[2J"), len(episodes[1]["message"]))
    with pytest.raises(InvalidError):
        read_event({"metadata": 1})
