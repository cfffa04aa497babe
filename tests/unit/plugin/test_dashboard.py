"""Who gets the page of the dashboard, what it shows, and the hour that it remembers."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pod_lines import pod_lines, verdict_on
from kubectl_gpufence.pods import SeenEvent, read_event
from kubectl_gpufence.verbs.dashboard import model as kept
from kubectl_gpufence.verbs.dashboard.access import (
    PageAddress,
    PageRequest,
    PageTarget,
    Refused,
    judge,
)
from kubectl_gpufence.verbs.dashboard.model import (
    HOUR_SECONDS,
    MOST_EVENTS,
    STEP_SECONDS,
    HourHistory,
    page_model,
    shares_of_cards,
    shares_of_pods,
)
from tests.support.plugin import agent, card_row, cluster, pod_row, seen_pod, snapshot, use_row
from tests.support.plugin_cases import odd, odd_cards, silent, stale, typical

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


EVENT = {
    "metadata": {"creationTimestamp": "2026-01-02T03:00:00Z"},
    "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "trainer-0"},
    "reason": "GPUMemoryLimitExceeded",
    "message": "holds too much",
    "type": "Warning",
    "count": 3,
    "lastTimestamp": "2026-01-02T03:04:05Z",
}


def model(found: ClusterAnswers, *events: SeenEvent, namespace: str = "") -> Any:
    return page_model(found, namespace, events)


def test_a_pod_has_what_top_says_of_it() -> None:
    """Limit, told and used in words, and the numbers that bars and sorting need."""
    over = model(typical())["pods"][0]

    assert ("3072Mi", ["2150Mi", "plain"], "3500Mi", "114%", "bad") == tuple(
        over[key] for key in ("limit", "told", "used", "share", "tone")
    )
    assert (3500 * MIB, 3 * GIB, 1.1393, 0.6999) == tuple(
        over[key] for key in ("bytes", "most", "ratio", "cap")
    )
    said = {"text": ["over", "bad"], "over": 12.0, "due": 18.0, "verb": "evict in", "rest": ""}
    assert said == over["verdict"]


def test_every_verdict_is_that_of_the_table() -> None:
    """Where nothing is counted down the words are the same; where something is, they begin so."""
    for found in (typical(), odd(), silent(), stale()):
        for line, pod in zip(pod_lines(found, ""), model(found)["pods"], strict=True):
            assert verdict_on(line).text.startswith(pod["verdict"]["text"][0])
            assert pod["verdict"]["over"] or verdict_on(line).text == pod["verdict"]["text"][0]


def test_what_nobody_knows_is_null_and_never_zero() -> None:
    """Of an agent that does not answer there are cards without parts, and pods without amounts."""
    told = model(silent())

    assert [[]] * 4 == [card["parts"] for card in told["cards"]]
    assert {"?"} == {card["used"] for card in told["cards"]}
    assert {None} == {pod["bytes"] for pod in told["pods"]}
    assert {None} == {pod["ratio"] for pod in told["pods"]}
    assert (4, "?", "?") == tuple(told["sum"][key] for key in ("unknown", "used", "total"))
    assert ["?"] * 3 == [node["used"] for node in told["nodes"]]


def test_a_cards_bar_is_what_pods_others_and_nobody_hold() -> None:
    """
    Where a namespace is shown, the pods of others are one part; sums that do not agree make no
    part negative.
    """
    rows = (
        pod_row(use_row(2 * GIB)),
        pod_row(use_row(GIB), uid="u2", namespace="team-b"),
    )
    card = card_row(used_bytes=4 * GIB, unattributed_bytes=GIB // 2, total_bytes=8 * GIB)
    found = cluster(seen_pod(), agents=(agent(snapshot(*rows, cards=(card,))),))
    low = card._replace(used_bytes=GIB, unattributed_bytes=None)
    late = cluster(agents=(agent(snapshot(*rows, cards=(low,))),))

    assert [0.25, 0.1875, 0.0625] == model(found, namespace="team-a")["cards"][0]["parts"]
    assert [0.125, 0.0, 0.0] == model(late)["cards"][0]["parts"]


def test_cards_say_what_is_wrong_with_them() -> None:
    """And nothing where all is well."""
    states = [card["state"] for card in model(odd_cards())["cards"]]

    assert ["fell off the bus", "warn"] == states[0]
    assert ["", "good"] == states[3]
    assert ["no agent", "faint"] == states[4]


def test_events_are_the_newest_and_harmless() -> None:
    """What somebody has written is one line of bounded length."""
    old = SeenEvent("2026-01-02T03:04:04Z", "Old", 1, "x\x1b[2J" + "y" * 2000, "a/Pod/b")
    many = [old] * MOST_EVENTS

    told = model(cluster(), *many, read_event(EVENT))["events"]
    assert {
        "at": "2026-01-02T03:04:05Z",
        "reason": "GPUMemoryLimitExceeded",
        "about": "team-a/Pod/trainer-0",
        "times": 3,
        "message": "holds too much",
        "tone": "warn",
    } == told[0]
    assert MOST_EVENTS == len(told)
    assert ("plain", True, 1003) == (
        told[1]["tone"],
        told[1]["message"].startswith("x?[2J"),
        len(told[1]["message"]),
    )


def test_what_is_no_event_is_refused() -> None:
    """Of an Event that says little, little is told."""
    assert SeenEvent("", "", 1, "", "Node") == read_event(
        {"involvedObject": {"kind": "Node"}, "count": "many"}
    )
    with pytest.raises(InvalidError):
        read_event({"metadata": 1})
