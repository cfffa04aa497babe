"""Who gets the page of the dashboard, what it shows, and the hour that it remembers."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from gpufence.quantity import GIB
from kubectl_gpufence.verbs.dashboard import model as kept
from kubectl_gpufence.verbs.dashboard.access import (
    AskedStory,
    PageAddress,
    PageRequest,
    PageTarget,
    Refused,
    judge,
)
from kubectl_gpufence.verbs.dashboard.model import (
    HOUR_SECONDS,
    STEP_SECONDS,
    HourHistory,
    shares_of_cards,
    shares_of_pods,
)
from tests.support.plugin import agent, card_row, cluster, pod_row, seen_pod, snapshot, use_row

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
    "target",
    [
        *("/a-token/x", "/a-token/state/", "/a-token/state?after=x", "/a-token/?after=1"),
        *(
            f"/a-token/explain{asked}"
            for asked in (
                *("", "?pod=team-a/trainer-0", "?pod=trainer-0&columns=80", "?pod=a/-x&columns=80"),
                *("?pod=a/x-&columns=80", "?pod=a/b/c&columns=80"),
                *("?pod=a/%3Cimg%3E&columns=80", "?pod=A/B&columns=80"),
            )
        ),
    ],
)
def test_there_is_nothing_else(target: str) -> None:
    """No path leads anywhere but to the page, its state, and stories of what can be a pod."""
    assert HTTPStatus.NOT_FOUND == refusal(target)


def test_a_pods_story_is_asked_for_by_its_name() -> None:
    """With the columns that there are for it, and by the page itself, as its state is."""
    target = "/a-token/explain?pod=team-a/trainer-0.x&columns=48"

    assert PageTarget(page=False, story=AskedStory("team-a", "trainer-0.x", 48)) == asked(target)
    assert HTTPStatus.FORBIDDEN == refusal(target, sec_fetch_site="same-site")
    assert HTTPStatus.UNAUTHORIZED == refusal(target.replace("a-token", "b-token"))


def test_an_owners_story_is_asked_for_by_kind_and_name() -> None:
    """It is guarded as a pod's is, and nothing else is an owner."""
    target = "/a-token/why?owner=team-a/Deployment/worker&columns=48"
    story = AskedStory("team-a", "Deployment/worker", 48)

    assert PageTarget(page=False, story=story) == asked(target)
    assert HTTPStatus.FORBIDDEN == refusal(target, sec_fetch_site="same-site")
    assert HTTPStatus.UNAUTHORIZED == refusal(target.replace("a-token", "b-token"))
    for wrong in ("-x/worker", "Deployment/-x", "worker", "a/b/c", "Deployment/%2e"):
        assert HTTPStatus.NOT_FOUND == refusal(target.replace("Deployment/worker", wrong))


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


FULL = {"gpu-1/GPU-0": 500}
UID = pod_row().uid


def values(history: HourHistory, number: int = 0, now: float = 0.0) -> Any:
    return history.since(number, now)["lines"]


def test_points_are_as_long_ago_as_they_are() -> None:
    """What nobody knew is null, and a line of which nothing is known is none."""
    history = HourHistory()
    history.add(1, 100.0, FULL)
    history.add(3, 110.0, {"gpu-1/GPU-0": None, "gpu-1/GPU-1": 7, "gpu-1/GPU-2": None})

    assert {
        "ago": [20.0, 10.0],
        "lines": {"gpu-1/GPU-0": [500, None], "gpu-1/GPU-1": [None, 7]},
    } == history.since(0, 120.0)


def test_no_look_is_taken_twice() -> None:
    """A point is due once the last one is far enough."""
    history = HourHistory()
    first = history.is_due(0.0)
    history.add(1, 100.0, FULL)

    assert [True, False, True] == [first, *(history.is_due(at) for at in (109.0, 110.0))]


def test_who_knows_the_earlier_points_gets_the_later_ones() -> None:
    """An open page is not told again what it has been told."""
    history = HourHistory()
    history.add(1, 100.0, FULL)
    history.add(7, 130.0, {"gpu-1/GPU-0": 250})

    assert {"ago": [0.0], "lines": {"gpu-1/GPU-0": [250]}} == history.since(1, 130.0)
    assert {"ago": [], "lines": {}} == history.since(7, 130.0)


def test_an_hour_is_remembered() -> None:
    """However long somebody watches, and of who is gone for that long nothing."""
    history = HourHistory()
    history.add(0, 0.0, {"gone": 1, **FULL})
    for number in range(1, 1000):
        history.add(number, number * STEP_SECONDS, FULL)
    known = history.since(0, 999 * STEP_SECONDS)
    ago = known["ago"]

    assert isinstance(ago, list)
    assert (HOUR_SECONDS / STEP_SECONDS, HOUR_SECONDS - STEP_SECONDS) == (len(ago), ago[0])
    assert {"gpu-1/GPU-0": [500] * 360} == known["lines"]


def test_those_who_are_gone_make_room(monkeypatch: Any) -> None:
    """There are never more lines than may be kept, and nobody who is there loses his."""
    monkeypatch.setattr(kept, "MOST_LINES", 3)
    history = HourHistory()
    history.add(1, 0.0, {"a": 1, "b": 1})
    history.add(2, 10.0, {"b": 2, "c": 2, "d": 2})
    full = values(history)
    history.add(3, 20.0, {"b": 3, "c": 3, "d": 3, "e": 3})

    assert {"b": [1, 2], "c": [None, 2], "d": [None, 2]} == full
    assert {"b": [1, 2, 3], "c": [None, 2, 3], "d": [None, 2, 3]} == values(history)


def test_a_card_is_known_while_its_sample_is_fresh() -> None:
    """Of an old one nobody knows, of one without a size nothing can be said."""
    fresh = snapshot(cards=(card_row(used_bytes=4 * GIB, total_bytes=16 * GIB),))
    sizeless = snapshot(cards=(card_row(total_bytes=0),))
    shown = [
        shares_of_cards(cluster(agents=(agent(state),)))
        for state in (fresh, fresh._replace(stale_seconds=999.0), sizeless)
    ]

    assert [{"gpu-1/GPU-0": 250}, {"gpu-1/GPU-0": None}, {"gpu-1/GPU-0": None}] == shown


def test_a_pod_is_measured_by_its_limit_or_by_its_card() -> None:
    """More than the limit is more than a thousand; what is old or cannot be read is unknown."""
    over = use_row(3 * GIB, limit_bytes=2 * GIB)
    without = use_row(4 * GIB, limit_bytes=None)
    unread = use_row(None)
    cards = (card_row(total_bytes=16 * GIB),)

    def shares(use: Any, **state: Any) -> dict[str, int | None]:
        seen = snapshot(pod_row(use), cards=cards)._replace(**state)
        return shares_of_pods(replace(cluster(agents=(agent(seen),)), pods=()), "")

    line = f"{UID}/0"
    assert {line: 1500} == shares(over)
    assert {line: 250} == shares(without)
    assert {line: None} == shares(unread)
    assert {line: None} == shares(over, stale_seconds=999.0)


def test_a_pod_that_holds_nothing_has_no_line() -> None:
    """Neither has one of which no agent tells."""
    idle = snapshot(pod_row()._replace(uses=()))
    agents = (agent(idle),)

    assert {} == shares_of_pods(cluster(agents=agents), "")
    assert {} == shares_of_pods(replace(cluster(agents=()), pods=(seen_pod(),)), "")


def test_a_pod_without_limit_on_an_unknown_card_has_no_height() -> None:
    """Nobody can say of what it is a share."""
    use = use_row(GIB, limit_bytes=None, card="GPU-9")
    seen = cluster(agents=(agent(snapshot(pod_row(use))),))

    assert {f"{UID}/?": None} == shares_of_pods(replace(seen, pods=()), "")
