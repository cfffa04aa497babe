"""A real browser, without a window, that tells what became of a page."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import websocket

from tests.support.observing import wait_until
from tests.support.tried import program

_ANSWER_SECONDS = 20.0
_TOLD = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
_LAID_OUT = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Shown(NamedTuple):
    """How much of a page is beside the window, what the browser said, and all it asked for."""

    beside: int
    said: list[str]
    asked: list[str]


class Tab:
    """One page of the browser, spoken to as its developer tools do."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(
            address, timeout=_ANSWER_SECONDS, suppress_origin=True
        )
        self._number = 0
        self._heard: list[dict[str, Any]] = []
        for part in ("Page", "Log", "Runtime", "Network"):
            self._ask(f"{part}.enable")

    def show(self, page: Path, width: int, scheme: str, media: str = "screen") -> Shown:
        self._heard.clear()
        sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **sizes)
        wish = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", media=media, features=wish)
        self._ask("Page.navigate", url=page.as_uri())
        while not self._all("Page.loadEventFired"):
            self._hear()
        found = self._ask("Runtime.evaluate", expression=_LAID_OUT, returnByValue=True)
        said = [json.dumps(item["params"]) for name in _TOLD for item in self._all(name)]
        asked = [
            item["params"]["request"]["url"] for item in self._all("Network.requestWillBeSent")
        ]
        return Shown(found["result"]["value"], said, asked)

    def close(self) -> None:
        self._socket.close()

    def _ask(self, method: str, **about: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": about}))
        while not (found := [item for item in self._heard if item.get("id") == self._number]):
            self._hear()
        result: dict[str, Any] = found[0]["result"]
        return result

    def _all(self, method: str) -> list[dict[str, Any]]:
        return [item for item in self._heard if item.get("method") == method]

    def _hear(self) -> None:
        self._heard.append(json.loads(self._socket.recv()))


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """Run it for as long as it is needed; what it keeps is in the folder."""
    command = [
        str(program("chromium")),
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"),
        *("--no-first-run", f"--user-data-dir={folder}", "about:blank"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            tab = Tab(_address(folder / "DevToolsActivePort"))
            try:
                yield tab
            finally:
                tab.close()
        finally:
            process.terminate()


def _address(note: Path) -> str:
    """Return where the only page listens, once the browser has noted its port."""
    wait_until(lambda: note.exists() and note.read_text(encoding="ascii").count("\n"), "a browser")
    port = note.read_text(encoding="ascii").splitlines()[0]
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/json/list", timeout=_ANSWER_SECONDS
    ) as it:
        pages = [item for item in json.load(it) if item["type"] == "page"]
    return str(pages[0]["webSocketDebuggerUrl"])
