"""The life of a program, from its settings to the signal that ends it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

SCRIPT = """
import sys
from dataclasses import dataclass

from gpufence.errors import GpufenceError
from service import program
from service.command import exit_code
from service.status_server import HTTPStatus, text_reply


class Small:
    pages = {"/healthz": lambda: text_reply(HTTPStatus.OK, "ok")}
    folders = {"/of/": lambda asked: text_reply(HTTPStatus.OK, asked.path)}

    def start(self):
        print("started", flush=True)

    def stop(self):
        print("stopped", flush=True)


@dataclass(frozen=True)
class Settings:
    log_level: str = "info"
    status_listen: tuple = ("127.0.0.1", int(sys.argv[1]))


def main():
    variables = {"GPUFENCE_TYPO": "1", "GPUFENCE_KNOWN": "1"}
    program.run("agent", Settings(), variables, Small, "STATUS", {"GPUFENCE_KNOWN"})
    return 0


sys.exit(exit_code("small", main))
"""


def started(port: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(port)]
    root = Path(__file__).parents[3]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=root)


def until(process: subprocess.Popen[str], message: str) -> list[dict[str, str]]:
    """Read the log up to a message."""
    assert process.stderr is not None
    lines: list[dict[str, str]] = []
    while not lines or lines[-1]["message"] != message:
        lines.append(json.loads(process.stderr.readline()))
    return lines


def test_a_program_serves_until_a_signal_and_stops_its_parts() -> None:
    """Its log begins with its settings and what sets nothing, and says what ended it."""
    with started() as process:
        lines = until(process, "serving")
        at = lines[-1]["statusListen"]
        pages = [urlopen(f"http://{at}/{path}").read() for path in ("healthz", "of/a")]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)

    assert [b"ok\n", b"a\n"] == pages
    assert ["settings", "GPUFENCE_TYPO is no setting of the agent; see gpufence-agent --help"] == [
        line["message"] for line in lines[:2]
    ]
    assert ["SIGTERM: ending", "ended"] == [
        json.loads(line)["message"] for line in errors.splitlines()
    ]
    assert ("started\nstopped\n", 0) == (output, process.returncode)


def test_an_address_that_is_taken_ends_a_program_before_it_begins() -> None:
    """The exit code is that of a wrong call, and the message names the setting."""
    with started() as first:
        port = until(first, "serving")[-1]["statusListen"].rpartition(":")[2]
        with started(int(port)) as second:
            output, errors = second.communicate(timeout=60)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)

    assert ("", 2) == (output, second.returncode)
    assert "small: STATUS: cannot listen on" in errors
