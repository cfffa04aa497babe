"""The page in a real browser."""

import json
from typing import Any

import pytest

from gpufence.quantity import GIB
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.dashboard.model import STEP_SECONDS
from tests.support.browser import Tab
from tests.support.live_page import (
    HOSTILE,
    ROWS,
    TOKEN,
    crowd,
    other_site,
    served,
    shown,
    watched,
    with_hung_agent,
    words,
)
from tests.support.observing import wait_until
from tests.support.plugin import agent, card_row, cluster, pod_row, snapshot, use_row
from tests.support.plugin_cases import typical

pytestmark = pytest.mark.needs("chromium")

LONG_SECONDS = 1.5  # of a machine that does other things as well; alone it takes no twentieth
EVENT = SeenEvent("2026-01-02T03:04:05Z", "Reason", 1, f"<b>{HOSTILE}</b>", HOSTILE, warning=True)


def test_limit_told_and_used_stand_side_by_side(tab: Tab) -> None:
    """
    The page says what `top` says, asks nobody but its own server, and breaks no rule of its policy.
    """
    with served(typical(), EVENT) as found:
        shown(tab, found)
        row = words(tab, "#rows .owner + .pod td")
        tab.wait("document.querySelector('#live').innerText === 'live'")
        urls = {item["request"]["url"] for item in tab.happened("Network.requestWillBeSent")}

    assert ["trainer-0", "gpu-1", "0", "3072Mi", "2150Mi"] == row[:5]
    assert ["3500Mi", "114%", "in the last 20s between 114 and 114 percent", "busy"] == row[5:9]
    assert "-" == row[9]
    assert row[10].startswith("over")
    assert "4.0Gi of 15.0Gi (27%) on 1 card; 4 pods, 1 over" in tab.text()
    assert set() == {
        url for url in urls if not url.startswith((found.server.address, "data:", "about:"))
    }
    assert [] == tab.happened("Log.entryAdded") + tab.happened("Runtime.exceptionThrown")


def test_verdicts_count_down_between_two_looks(tab: Tab) -> None:
    """Time goes on while the cluster is not asked."""
    with served(typical()) as found:
        found.looks.gate.clear()
        shown(tab, found)
        first = words(tab, ".verdict")[0]
        tab.wait(f"document.querySelector('.verdict').innerText !== {json.dumps(first)}")
        second = words(tab, ".verdict")[0]

    due = [int(text.rpartition(" in ")[2].removesuffix("s")) for text in (first, second)]
    assert first.startswith("over ")
    assert due[0] > due[1]


def test_an_agent_that_hangs_is_unknown_and_never_zero(tab: Tab) -> None:
    """Its cards and pods keep their places without an amount, and a note names it."""
    with served(with_hung_agent(crowd(2, 32), "gpu-1")) as found:
        shown(tab, found)
        tiles = words(tab, ".host:nth-child(2) .tile")
        hatched_tiles = tab.run("document.querySelectorAll('.tile .unknown').length")
        tab.press("/")
        for key in "silent":
            tab.press(key)
        pods = words(tab, "#rows .pod")
        figures = {tuple(words(tab, f"#rows .{name}")) for name in ("card", "used", "share")}
        hatched = tab.run("document.querySelectorAll('#rows .unknown').length")

    assert 8 == len(tiles) == hatched_tiles
    assert all("?" in tile and "agent silent" in tile and "0Mi" not in tile[:8] for tile in tiles)
    assert 16 == len(pods) == hatched
    assert {("?",) * 16} == figures
    assert "1 agent (gpu-1): it does not answer in time" in tab.text()
    assert "? of ? on 8 cards, 8 unknown; 16 of 32 pods hold ?, 0 over, 16 unknown" in tab.text()


def test_hostile_names_are_words(tab: Tab) -> None:
    """Whatever somebody has called his pod, or made an event say, is shown and not obeyed."""
    rows = (pod_row(use_row(GIB), name=HOSTILE, namespace="</td><script>alert(2)</script>"),)
    card = card_row(model="<svg onload=alert(3)>")
    with served(cluster(agents=(agent(snapshot(*rows, cards=(card,))),)), EVENT) as found:
        shown(tab, found)
        for part in (HOSTILE, "alert(2)", "alert(3)"):
            tab.wait(f"document.body.innerText.includes({json.dumps(part)})")

    assert 0 == tab.run("document.querySelectorAll('img, td script, svg[onload]').length")
    assert [] == tab.happened("Page.javascriptDialogOpening")


def test_without_the_token_there_is_no_page(tab: Tab) -> None:
    """Somebody who guesses the port sees a sentence."""
    with served(typical()) as found:
        tab.open(found.server.address.replace(TOKEN, ""))

        tab.wait("document.body.innerText.includes('open the whole address')")
        assert "team-a" not in tab.text()


def test_another_sites_page_cannot_read_it(tab: Tab) -> None:
    """
    Even one that knows the token gets neither page nor state: not by asking, not as a script, not
    in a frame.
    """
    with served(typical()) as found, other_site(found.server.address) as url:
        tab.open(url)
        told = tab.wait("window.told")

    assert {
        "fetch": "refused",
        "opaque": "opaque",
        "script": "refused",
        "frame": "unreadable",
        "framed": "",
    } == json.loads(told) | {"framed": "".join(_framed(tab))}


def test_the_page_is_used_with_the_keyboard(tab: Tab) -> None:
    """Keys filter, sort and turn pages, and what has changed is said."""
    with served(crowd(2, 240)) as found:
        shown(tab, found)
        tab.press("]")

        assert "101 to 200 of 240" == tab.run("document.querySelector('#range').innerText")
        tab.press("/")
        for key in "team-3":
            tab.press(key)
        tab.wait(f"{ROWS} === 20")
        assert {"namespace team-3"} == set(words(tab, ".owner .about span:nth-child(2)"))
        assert "20 of 240 pods hold " in tab.run("document.querySelector('#sum').innerText")
        assert "20 of 240 pods" == tab.run("document.querySelector('#said').textContent")
        tab.press("Escape")
        tab.run("document.querySelector('#t-name button').click()")
        names = words(tab, "#rows .name bdi")

    assert sorted(names) == names
    assert "ascending" == tab.run("document.querySelector('#t-name').ariaSort")


def test_a_screen_reader_finds_tables_and_names(tab: Tab) -> None:
    """Tables have their titles, rows their cells, and every button and field a name."""
    with served(typical(), EVENT) as found:
        shown(tab, found)
        tab.send("Accessibility.enable")
        wait_until(lambda: ("button", "pods of card 0 of gpu-1") in _roles(tab))  # once it is drawn
        found_roles = _roles(tab)

    assert 11 == len([name for role, name in found_roles if role == "columnheader"])
    assert {"Pods 4"} == {name for role, name in found_roles if role == "table"}
    assert ("button", "trainer-0") in found_roles
    assert ("searchbox", "Filter") in found_roles
    assert [] == [
        role for role, name in found_roles if role in ("button", "searchbox", "table") and not name
    ]


def _roles(tab: Tab) -> list[tuple[Any, Any]]:
    nodes = tab.send("Accessibility.getFullAXTree")["nodes"]
    return [(_value(node, "role"), _value(node, "name")) for node in nodes]


def test_many_cards_and_pods_do_not_make_it_stutter(tab: Tab) -> None:
    """
    80 cards and 2,000 pods change again and again, and no single change keeps the page busy for
    long.
    """
    tab.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="window.long = []; new PerformanceObserver(list => list.getEntries().forEach("
        "entry => long.push(entry.duration))).observe({type: 'longtask', buffered: true});",
    )
    with served(crowd(), interval=0.5, seconds_a_look=STEP_SECONDS) as found:
        shown(tab, found)
        tab.run("long.length = 0")
        for grown in range(1, 6):
            before = tab.run("live.look")
            found.looks.cluster = crowd(grown=grown)
            tab.wait(f"live.look > {before}")

        assert 80 == tab.run("document.querySelectorAll('.tile').length")
        assert "2000" == tab.run("document.querySelector('#n-pods').innerText")
        assert 100 == tab.run(ROWS)
        assert 10 == tab.run("document.querySelectorAll('#rows .owner').length")
        assert 2000 == tab.run("past.pods.lines.size")
        assert 2 <= tab.run(
            "document.querySelector('#rows .hour .line').getAttribute('d').split('L').length"
        )
        assert max(tab.run("long"), default=0) < LONG_SECONDS * 1000


def test_lines_have_holes_where_nothing_was_known(tab: Tab) -> None:
    """
    A page that is opened later has the points of before, and a moment without an answer is none;
    the limit is marked where a pod held more.
    """
    unknown = card_row(used_bytes=None, trouble="lost")
    hole = cluster(agents=(agent(snapshot(pod_row(use_row(None)), cards=(unknown,))),))
    with served(typical(), interval=0.05, seconds_a_look=STEP_SECONDS) as found:
        for known in (True, False, True):
            found.looks.cluster = typical() if known else hole
            watched(found, looks=5)
        shown(tab, found)
        line = tab.run("document.querySelector('.tile .line').getAttribute('d')")
        said = tab.run("document.querySelector('.tile .hidden').textContent")
        pods = tab.run("document.querySelector('#rows .hour .line').getAttribute('d')")
        limit = tab.run("document.querySelector('#rows .hour .limit').getAttribute('d')")

    assert 2 == line.count("M") == pods.count("M")
    assert line.count("L") >= 2
    assert "between 27 and 27 percent" in said
    assert limit.startswith("M0 ")


def test_the_page_says_when_nobody_answers_any_longer(tab: Tab) -> None:
    """What it shows then is old, and looks so."""
    with served(typical()) as found:
        shown(tab, found)
    tab.wait("document.querySelector('#live').innerText.startsWith('no answer')")

    assert tab.run("document.body.classList.contains('lost')")


def test_what_counts_is_no_part_of_a_status(tab: Tab) -> None:
    """While looks fail a screen reader says so once, and not each second how old the page is."""
    with served(typical()) as found:
        shown(tab, found)
        found.looks.cluster = None  # type: ignore[assignment]  # a bug of ours
        tab.wait("document.querySelector('#live').innerText.startsWith('this look has failed')")
        tab.run("document.querySelector('#live').title = document.querySelector('#live').innerText")
        tab.wait("/this is [^012].* old/.test(document.querySelector('#old').innerText)")

        assert tab.run("(live => live.title === live.innerText)(document.querySelector('#live'))")


def test_two_questions_at_once_are_one(tab: Tab) -> None:
    """Who comes back to the page while it asks gets no point of the last hour twice."""
    with served(typical()) as found:
        shown(tab, found)
        found.looks.gate.clear()
        times = tab.run(
            "(async () => { clearTimeout(live.timer); live.look = 0; past.cards.times.length = 0;"
            "await Promise.all([poll(), poll()]); return past.cards.times; })()"
        )

    assert 1 == len(times)


def test_a_short_name_of_a_node_stays_on_one_line(tab: Tab) -> None:
    """Long names of pods take no room from it, so that rows are one line high."""
    with served(typical()) as found:
        shown(tab, found)

        assert 1 == tab.run("document.querySelector('#rows .node bdi').getClientRects().length")


def test_a_card_shows_its_pods_alone(tab: Tab) -> None:
    """A button of the card chooses them, and another one all again."""
    with served(crowd(2, 64)) as found:
        shown(tab, found)
        tab.run("document.querySelector('.tile button').click()")

        assert {"gpu-0 0"} == {
            f"{node} {card}"
            for node, card in zip(words(tab, "#rows .node"), words(tab, "#rows .card"), strict=True)
        }
        assert "true" == tab.run("document.querySelector('.tile button').ariaPressed")
        tab.run("document.querySelector('#card').click()")
        wait_until(lambda: tab.run(ROWS) == 64, "all pods")


def _framed(tab: Tab) -> list[str]:
    """Return what of the page has come into a frame of another site."""
    tree = tab.send("Page.getFrameTree")["frameTree"].get("childFrames", [])
    return [item["frame"]["url"] for item in tree if TOKEN in item["frame"]["url"]]


def _value(node: dict[str, Any], key: str) -> str:
    return str(node.get(key, {}).get("value", ""))
