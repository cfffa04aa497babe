"""The dashboard's page as it is served, what is behind it, and a page of another site."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gpufence.quantity import GIB, MIB
from gpufence.snapshot import ActivityRow, CardRow, PodActivityRow
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, see_node
from kubectl_gpufence.live import CachedAnswer
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.dashboard import EventList, PagePoller
from kubectl_gpufence.verbs.dashboard.server import PageServer
from tests.support.browser import Tab
from tests.support.builders import T4_BYTES
from tests.support.observing import Serving, wait_until
from tests.support.plugin import (
    agent,
    card_row,
    pod_row,
    raw_node,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)

ROWS = "document.querySelectorAll('#rows .pod').length"
TOKEN = "token-of-the-tests"
HOSTILE = "<img src=x onerror=alert(1)>"
CARDS_OF_NODE = 8


class Looks:
    """Shows what a test puts into `cluster`; a look waits while `gate` is closed."""

    def __init__(self, cluster: ClusterAnswers) -> None:
        self.cluster = cluster
        self.taken = 0
        self.gate = threading.Event()
        self.gate.set()

    def look(self) -> ClusterAnswers:
        self.gate.wait()
        self.taken += 1
        return self.cluster

    def stop(self) -> None:
        self.gate.set()


@dataclass(frozen=True)
class Served:
    """A page that is served, and what is behind it."""

    server: PageServer
    poller: PagePoller
    looks: Looks


@contextmanager
def served(
    cluster: ClusterAnswers,
    *events: SeenEvent,
    namespace: str = "",
    interval: float = 0.2,
    seconds_a_look: float = 0.0,
) -> Iterator[Served]:
    """Serve the page; with `seconds_a_look` its clock goes by looks, however long those take."""
    looks = Looks(cluster)
    clock = (lambda: looks.taken * seconds_a_look) if seconds_a_look else time.monotonic
    said = CachedAnswer(lambda: EventList(events))
    poller = PagePoller(looks, namespace, interval, said, clock)  # type: ignore[arg-type]  # a fake of LiveLooks
    server = PageServer(0, TOKEN, poller.state, poller.tell)
    poller.start()
    server.start()
    try:
        yield Served(server, poller, looks)
    finally:
        looks.gate.set()
        poller.stop()
        server.close()


def crowd(nodes: int = 10, pods: int = 2000, grown: int = 0) -> ClusterAnswers:
    """Build nodes with eight cards each and pods on all of them; `grown` moves what they hold."""
    agents = [_busy_node(number, pods // nodes, grown) for number in range(nodes)]
    seen = {f"gpu-{number}": seen_node(f"gpu-{number}", CARDS_OF_NODE) for number in range(nodes)}
    declared = seen_pod()
    listed = tuple(
        replace(declared, uid=row.uid, namespace=row.namespace, name=row.name, node=item.node)
        for item in agents
        for row in (item.snapshot.pods if item.snapshot else ())
    )
    return ClusterAnswers(listed, {item.node: item for item in agents}, seen)


def _busy_node(number: int, pods: int, grown: int) -> NodeAgent:
    rows = tuple(_pod(number, place, grown) for place in range(pods))
    cards = tuple(_card(place, grown + number) for place in range(CARDS_OF_NODE))
    state = snapshot(*rows, node=f"gpu-{number}", cards=cards, nobody=())
    return agent(state, node=f"gpu-{number}", pod=f"gpufence-agent-{number}")


def _pod(number: int, place: int, grown: int) -> Any:
    used = (200 + (place * 37 + number * 11 + grown * 13) % 3400) * MIB
    over = used > 3 * GIB
    use = use_row(
        used,
        card=f"GPU-{place % CARDS_OF_NODE}",
        outcome="holding" if over else "within",
        over_seconds=float(place % 20) if over else 0.0,
        due_seconds=float(30 - place % 20) if over else None,
        activity=ActivityRow("busy", 0.0, "Busy"),
    )
    return pod_row(
        use,
        uid=f"u{number}-{place}",
        namespace=f"team-{place % 12}",
        name=f"trainer-{place:04}-{number}",
        owner=f"Job/trainer-{place:04}",
        activity=PodActivityRow("busy", 0.0, "Busy", busy_share=0.5),
    )


def _card(index: int, grown: int) -> CardRow:
    used = (index * 1700 + grown * 331) % 15_000
    return card_row(index)._replace(
        used_bytes=used * MIB, free_bytes=T4_BYTES - used * MIB, committed_bytes=12 * GIB
    )


def with_hung_agent(cluster: ClusterAnswers, node: str) -> ClusterAnswers:
    """Return the same while the agent of a node does not answer."""
    silent = NodeAgent(node, f"agent-of-{node}", trouble="it does not answer in time", late=True)
    known = {**cluster.nodes, node: see_node(raw_node(node, CARDS_OF_NODE))}
    note = f"1 agent ({node}): it does not answer in time"
    return replace(cluster, agents={**cluster.agents, node: silent}, nodes=known, notes=(note,))


@contextmanager
def other_site(address: str) -> Iterator[str]:
    """Serve a page whose script tries all ways to an address, with the outcome in `window.told`."""
    site = _Site(("127.0.0.1", 0), _Another)
    site.script = _ATTEMPTS.replace("ADDRESS", address)
    with Serving(site):
        yield f"http://localhost:{site.server_address[1]}/"


class _Site(ThreadingHTTPServer):
    daemon_threads = True
    script = ""


class _Another(BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        body = f"<!DOCTYPE html><body><script>{self.server.script}</script>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_ATTEMPTS = """
const told = {};
const loads = tag => new Promise(done => {
  const element = document.createElement(tag);
  element.onload = () => done(element);
  element.onerror = () => done(null);
  element.src = 'ADDRESS' + (tag === 'script' ? 'state' : '');
  document.body.append(element);
});
(async () => {
  told.fetch = await fetch('ADDRESSstate').then(answer => answer.text(), () => 'refused');
  told.opaque = await fetch('ADDRESSstate', {mode: 'no-cors'})
    .then(answer => answer.type, () => 'opaque');
  told.script = await loads('script') ? 'run' : 'refused';
  const frame = await loads('iframe');
  try { told.frame = frame.contentDocument.body.innerText; } catch { told.frame = 'unreadable'; }
  if (told.frame === undefined || frame.contentDocument === null) told.frame = 'unreadable';
  window.told = JSON.stringify(told);
})();
"""


def shown(tab: Tab, found: Served) -> Tab:
    """Open the page, and wait until it shows pods."""
    assert "" == tab.open(found.server.address)
    tab.wait(f"{ROWS} > 0")
    return tab


def watched(found: Served, looks: int) -> None:
    """Have so many looks more be taken while a page is open."""
    for _ in range(looks):
        before = found.looks.taken
        wait_until(lambda: found.poller.state(0) and found.looks.taken > before)  # noqa: B023


def words(tab: Tab, selector: str) -> list[str]:
    script = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"
    return [str(text) for text in tab.run(script)]
