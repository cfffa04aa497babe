"""A real Chromium, and what is wrong with the words of a page."""

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

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
_CODES = {"Enter": 13, "Escape": 27}  # without them they open and close nothing
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
        tab.prefer(dark=dark)
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

    def prefer(self, *, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

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
        typed: dict[str, Any] = {"text": key} if len(key) == 1 else {}
        if key in _CODES:
            typed["windowsVirtualKeyCode"] = _CODES[key]
        if key == "Enter":
            typed["text"] = "\r"
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **typed)

    def happened(self, method: str) -> list[dict[str, Any]]:
        """Return what the page's session has told of a kind."""
        return [
            event["params"]
            for event in list(self._browser.events)
            if event["method"] == method and event.get("sessionId") == self._session
        ]
