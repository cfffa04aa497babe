"""The dashboard's page, a real Chromium before it, and a page of another site."""

import base64
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from gpufence.quantity import GIB, MIB
from gpufence.snapshot import ActivityRow, CardRow, PodActivityRow
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, see_node
from kubectl_gpufence.live import CachedAnswer
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.dashboard import EventList, PagePoller
from kubectl_gpufence.verbs.dashboard.server import PageServer
from tests.support.builders import T4_BYTES
from tests.support.observing import Serving
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
from tests.support.running import program

PATIENCE_SECONDS = 60.0
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-extensions", "--disable-sync", "--no-default-browser-check", "--mute-audio"),
    *("--remote-debugging-pipe", "--hide-scrollbars"),
)
FAULTS = Path(__file__).with_name("faults.js").read_text(encoding="utf-8")
"""What is wrong with a page's words: too little contrast, or not wholly inside their boxes."""
# The browser reads commands from 3 and writes answers to 4.
_EXEC = 'exec "$0" "$@" 3<&{} 4>&{}'


class BrowserError(Exception):
    """Raised when the browser refuses a command, or a page's script fails."""


class Chromium:
    """Use it as a context manager; it has a profile of its own, which goes with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gf-", ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._in = os.fdopen(ours_in, "rb")
        shell = ("bash", "-c", _EXEC.format(theirs_in, theirs_out), str(program("chromium")))
        profile = f"--user-data-dir={self._folder.name}"
        self._process = subprocess.Popen(
            [*shell, *_OPTIONS, profile, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._changed = threading.Condition()
        self._answers: dict[int, Any] = {}
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.send("Browser.close")
            self._process.wait(PATIENCE_SECONDS)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._reader.join(PATIENCE_SECONDS)
        self._out.close()
        self._in.close()
        self._folder.cleanup()

    def send(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Send a command and return its result."""
        with self._changed:
            self._number += 1
            number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        self._out.write(json.dumps(command).encode() + b"\0")
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._answers, PATIENCE_SECONDS):
                raise BrowserError(f"{method}: no answer")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    @contextmanager
    def tab(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator["Tab"]:
        """Open an empty tab of a size."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.send(f"{domain}.enable")
        tab.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.send("Emulation.setEmulatedMedia", features=[scheme])
        try:
            yield tab
        finally:
            self.send("Target.closeTarget", targetId=target)

    def _read(self) -> None:
        rest = b""
        while chunk := self._in.read1(1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            with self._changed:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self._answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self._changed.notify_all()


class Tab:
    """One page."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def send(self, method: str, **parameters: Any) -> Any:
        return self._browser.send(method, self._session, **parameters)

    def open(self, url: str) -> str:
        """Go to an address; returns why that failed, if it did."""
        return str(self.send("Page.navigate", url=url).get("errorText", ""))

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script: str) -> Any:
        """Return what an expression is in the page, once it is there if it is a promise."""
        done = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise BrowserError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression is true, and return it."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not (value := self.run(script)):
            if time.monotonic() > until:
                raise BrowserError(f"waited in vain for {script}; there is: {self.text()[:2000]}")
            time.sleep(0.05)
        return value

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def press(self, key: str) -> None:
        typed = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **typed)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is seen, or of all of the page."""
        taken = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def happened(self, method: str) -> list[dict[str, Any]]:
        """Return what the page's session has told of a kind."""
        return [
            event["params"]
            for event in list(self._browser.events)
            if event["method"] == method and event.get("sessionId") == self._session
        ]


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
    server = PageServer(0, TOKEN, poller.state)
    poller.start()
    server.start()
    try:
        yield Served(server, poller, looks)
    finally:
        looks.gate.set()
        poller.stop()
        server.close()


def crowd(nodes: int = 10, pods: int = 2000, grown: int = 0) -> ClusterAnswers:
    """
    Build a cluster of nodes with eight cards each and pods on all of them; `grown` moves what they
    hold.
    """
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
    """
    Serve a page whose script tries all ways to an address, and says in `window.told` how that went.
    """
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
