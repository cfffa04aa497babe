"""How the page looks in a real browser: whole words, owners, scales, and the story of a pod."""

from dataclasses import replace

import pytest

from gpufence.capped import Ending
from gpufence.quantity import GIB
from gpufence.records import write_records
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.dashboard.model import STEP_SECONDS
from tests.http.plugin.test_dashboard import started
from tests.http.plugin.test_why import APPS, PAGE, node_records, refusal_of
from tests.support.browser import FAULTS, Tab
from tests.support.live_page import ROWS, served, shown, watched, words
from tests.support.plugin import Desk, agent, card_row, cluster, listed, pod_row, snapshot, use_row
from tests.support.plugin_cases import typical
from tests.support.servers import reply
from tests.support.verb_cases import ENDED

pytestmark = pytest.mark.needs("chromium")
LEAST_OF_PAGE = 0.1
EPISODE = tuple(
    SeenEvent(
        f"2026-01-02T03:04:{second:02}Z",
        "GPUMemoryLimitExceeded",
        1,
        "Over its limit: 3368 of 3072 MiB on card 0 (container trainer, PID 1195). " * 3,
        f"team-a/Pod/trainer-{second % 2}",
        warning=True,
    )
    for second in range(50)
)


def test_every_word_is_whole_and_readable(tab: Tab) -> None:
    """
    However narrow the window, in dark and in light: nothing is beside it or cut, and each word has
    enough contrast; with long names, owners with episodes and containers that fail.
    """
    grounds = set()
    with served(crashing(), *EPISODE) as found:
        shown(tab, found)
        for width, dark in ((320, True), (360, False), (768, True), (1280, False), (1920, True)):
            tab.resize(width, 900)
            tab.prefer(dark=dark)
            grounds.add(tab.run("getComputedStyle(document.body).backgroundColor"))

            assert [] == tab.run(FAULTS)
            assert tab.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert 2 == len(grounds)


def crashing() -> ClusterAnswers:
    """Build `typical` with a container that fails, and cards of two models with long names."""
    ending = Ending("main", 1, "Error", "2026-01-02T03:04:05Z", 7, "CrashLoopBackOff", "CUDA oom")
    found = typical()
    long = card_row(model="NVIDIA A100-SXM4-80GB MIG 1g.10gb", busy_share=0.4)
    cards = (long._replace(celsius=61, watts=312, most_watts=400), card_row(1))
    state = found.agents["gpu-1"].snapshot
    assert state is not None
    made = replace(found.pods[1], endings=(ending,))
    return replace(
        found,
        pods=(found.pods[0], made, *found.pods[2:]),
        agents={"gpu-1": agent(state._replace(cards=cards))},
    )


def test_owners_have_episodes_and_not_lists_of_events(tab: Tab) -> None:
    """
    Fifty Events of an owner's pods are one line above them, a small part of the page, and what was
    said is there when it is opened.
    """
    with served(crashing(), *EPISODE) as found:
        shown(tab, found)
        owner = words(tab, "#rows .owner")
        height = tab.run(
            "document.querySelector('.episodes').offsetHeight / document.body.offsetHeight"
        )
        tab.run("document.querySelector('summary').click()")

        assert "Over its limit: 3368 of 3072 MiB" in tab.text()

    assert 1 == len(owner)
    assert "Job/trainer\nnamespace team-a\n2 pods\n6.3Gi held\n1 over" in owner[0]
    assert "GPUMemoryLimitExceeded\n50 times in 49s, 2 pods" in owner[0]
    assert height < LEAST_OF_PAGE


def test_what_is_far_over_looks_so(tab: Tab) -> None:
    """Bars have one scale: 210 % of a limit is twice as long as 105 %, and marked."""
    rows = [
        pod_row(use_row(GIB * share // 100, limit_bytes=GIB), uid=f"u{share}", name=f"held-{share}")
        for share in (210, 105, 50)
    ]
    with served(cluster(agents=(agent(snapshot(*rows)),))) as found:
        shown(tab, found)
        wide = tab.run(
            "[...document.querySelectorAll('#rows .bar')].map(bar => [...bar.querySelectorAll('i')]"
            ".reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))"
        )
        limits = tab.run(
            "[...document.querySelectorAll('#rows .bar')].map(bar => bar.mark.offsetLeft)"
        )

        assert ["210%"] == words(tab, "#rows .much")
    assert pytest.approx(2, rel=0.05) == wide[0] / wide[1]
    assert 1 == len(set(limits))


def test_the_line_takes_all_of_its_width_from_the_start(tab: Tab) -> None:
    """After three points it begins at the left edge, ends at the right, and says how long it is."""
    with served(typical(), interval=0.05, seconds_a_look=STEP_SECONDS) as found:
        watched(found, looks=6)
        found.looks.gate.clear()
        shown(tab, found)
        line = tab.run("document.querySelector('.tile .line').getAttribute('d')")
        said = tab.run("document.querySelector('.span').textContent")

    assert float(line[1:].split()[0]) < 1
    assert line.endswith("H360")
    assert "the last 1m" in said


def test_a_pod_says_all_that_is_known_of_it(tab: Tab, desk: Desk) -> None:
    """A click, or the key Enter, shows what the verb explain says, and Escape leads back."""
    explained = desk.run("explain", "-n", "team-a", "trainer-0").out
    with started(desk) as program:
        try:
            assert program.stdout is not None
            tab.open(program.stdout.readline().strip())
            tab.wait(f"{ROWS} > 0")
            tab.run("document.querySelector('.name button').focus()")
            tab.press("Enter")
            tab.wait("document.querySelector('#words').textContent.includes('WHAT TO DO')")
            told = tab.run("document.querySelector('#words').textContent")
            faults = tab.run(FAULTS)
            tab.press("Escape")
            tab.wait("!document.querySelector('#story').open")
            wrong = tab.happened("Log.entryAdded") + tab.happened("Runtime.exceptionThrown")
        finally:
            program.terminate()

    assert explained.split() == told.split()
    assert [] == faults
    assert [] == wrong


def words_of(story: str) -> list[str]:
    """Return what stands below the chart, which is as wide as there is room."""
    return story.rpartition("WHAT HAPPENED")[2].split()


def test_the_story_of_pods_that_are_gone_is_why(tab: Tab, desk: Desk) -> None:
    """Evictions lead to what the verb why says of the owner, as do a pod and refusals."""
    event = {
        "reason": "GPUMemoryEvicted",
        "message": "Evicted: 3900 of 3072 MiB.",
        "type": "Warning",
        "count": 1,
        "lastTimestamp": ENDED.at,
    }
    about = (("ReplicaSet", "worker-7f9c"), ("Pod", "worker-7f9c-x"), ("Pod", "alone"))
    events = [
        {**event, "involvedObject": {"kind": kind, "namespace": "team-a", "name": name}}
        for kind, name in about
    ]
    denied = refusal_of("fresh-7d9f", ENDED.at)
    desk.get("/api/v1/namespaces/team-a/events", listed(*events, denied))
    kind = {"name": "deployments", "kind": "Deployment", "namespaced": True}
    desk.get("/apis", reply(APPS))
    desk.get("/apis/apps/v1", reply({"resources": [kind]}))
    desk.get("/api/v1", reply({"resources": []}))
    alone = ENDED._replace(name="alone", owner="", controller="")
    desk.get(PAGE, reply(write_records(node_records(ENDED, alone)).encode()))
    typed = ("deployment/worker", "alone", "deployment/fresh")
    expected = [desk.run("why", name).out for name in typed]
    told = []
    with started(desk) as program:
        try:
            assert program.stdout is not None
            tab.open(program.stdout.readline().strip())
            tab.wait("document.querySelectorAll('#others li').length == 3")
            assert "gpufence refuses this pod: 200Mi is too little" in tab.text()
            for name in ("why Deployment/worker", "explain alone", "why Deployment/fresh"):
                buttons = "[...document.querySelectorAll('.whole button')]"
                tab.run(f"{buttons}.find(item => item.textContent == '{name}').click()")
                tab.wait("document.querySelector('#words').textContent.includes('WHAT TO TYPE')")
                told.append(tab.run("document.querySelector('#words').textContent"))
                assert [] == tab.run(FAULTS)
                tab.press("Escape")
                tab.wait("!document.querySelector('#story').open")
            wrong = tab.happened("Log.entryAdded") + tab.happened("Runtime.exceptionThrown")
        finally:
            program.terminate()

    assert ["█" in story for story in told] == [True, True, False]
    assert [words_of(story) for story in expected] == [words_of(story) for story in told]
    assert [] == wrong


def test_what_is_borrowed_stands_out(tab: Tab) -> None:
    """Above the request the bar has another colour, which the legend has where any pod borrows."""
    burst = {"limit_bytes": 8 * GIB, "promised_bytes": 2 * GIB, "borrowed_bytes": 4 * GIB}
    rows = (pod_row(use_row(6 * GIB, **burst)), pod_row(use_row(GIB), uid="u2", name="fixed"))
    parts = (
        "[...document.querySelectorAll('#rows .bar')].map(bar => [...bar.querySelectorAll('i')]"
        ".map(part => Math.round(part.getBoundingClientRect().width / bar.clientWidth * 100)))"
    )
    legend = "document.getElementById('borrows').hidden"
    with served(cluster(agents=(agent(snapshot(*rows)),))) as found:
        shown(tab, found)
        limits = words(tab, "#rows td.limit")
        borrowed, hidden = tab.run(parts), tab.run(legend)
        tab.resize(320, 900)

        assert [] == tab.run(FAULTS)
    with served(cluster(agents=(agent(snapshot(rows[1])),))) as found:
        shown(tab, found)

        assert tab.run(legend)
    assert not hidden
    assert ["2048Mi / 8192Mi", "3072Mi"] == limits
    assert [[25, 50, 0], [33, 0, 0]] == borrowed
