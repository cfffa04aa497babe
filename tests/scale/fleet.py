"""
`python -m tests.scale.fleet < ENVIRONMENTS`: many real agents, each a process of its own that was
forked off after everything was loaded, so that a machine has room for hundreds.

Each is given its environment, its access and a file for its log; all end by SIGTERM.
"""

import gc
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agent.program import run
from kube import ClientSettings

_PAUSE_SECONDS: Final = 0.1


def start(said: dict[str, Any]) -> int:
    """Fork an agent."""
    if child := os.fork():
        return child
    log = os.open(said["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stderr.fileno())
    access = ClientSettings(
        server=said["server"], ca_file=Path(said["authority"]), token_file=Path(said["token"])
    )
    try:
        run(said["environment"], access)
    finally:
        os._exit(0)


def main() -> None:
    wanted = json.load(sys.stdin)
    gc.freeze()
    children = []
    for said in wanted:
        children.append(start(said))
        time.sleep(_PAUSE_SECONDS)

    def end(*_: object) -> None:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
