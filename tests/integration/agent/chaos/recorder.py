"""
Plays of chaos in which each agent writes down what its judge was asked, and answered:
`python -m tests.integration.agent.chaos.recorder FILE SEED SECONDS [SETTING=VALUE ...]`.
"""

import os
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from agent.__main__ import main
from agent.loop import loop
from simulator.progress import Progress
from tests.integration.agent.chaos import stage
from tests.integration.agent.chaos.people import Disturbance, long_program, short_program
from tests.integration.agent.chaos.play import Play, planned
from tests.integration.agent.chaos.test_chaos import COUNT, SHORT_SECONDS
from tests.support.agent.node_site import AgentProcess, NodeSite
from tests.support.agent.recording import Writer, pack

FOLDER = "GPUFENCE_RECORDED"


def _agent(folder: str) -> int:
    """Run the agent, and write each call of its judge into a file that begins with the time."""
    writer = Writer()
    path = Path(folder) / f"{time.time():.3f}"
    with path.open("w", buffering=1) as file:
        for name in ("judge", "objection", "settle"):
            setattr(loop, name, _written(name, writer, file))
        return main()


def _written(name: str, writer: Writer, file: Any) -> Any:
    asked = getattr(loop, name)

    def answered(*given: Any) -> Any:
        answer = asked(*given)
        file.write(writer.line((name, given, answer)) + "\n")
        return answer

    return answered


def _play(file: Path, seed: int, seconds: float, settings: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vars(stage)["NodeSite"] = partial(_Site, {FOLDER: folder, **settings})
        with stage.staged() as on:
            Play(on, planned(seed, seconds, partial(_weather, seconds)), Progress(sys.stderr)).run()
        pack(sorted(Path(folder).iterdir()), file)


class _Site(NodeSite):
    """A site whose agents write down what they judge."""

    def __init__(self, more: dict[str, str], *of_site: Any) -> None:
        super().__init__(*of_site)
        self._more = more

    def agent(self, **settings: str) -> AgentProcess:
        return AgentProcess(__spec__.name, **self.environment() | settings | self._more)


def _weather(seconds: float, dice: random.Random) -> list[Disturbance]:
    if seconds <= SHORT_SECONDS:
        return short_program(dice, COUNT)
    return long_program(dice, COUNT, seconds)


if __name__ == "__main__":
    if FOLDER in os.environ:
        sys.exit(_agent(os.environ[FOLDER]))
    name, seed, seconds, *more = sys.argv[1:]
    _play(Path(name), int(seed), float(seconds), dict(each.split("=", 1) for each in more))
