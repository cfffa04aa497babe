"""
PURE. Which commands run here: the simulator's own workload, and nothing else.

A pod's command comes from whoever may create pods. On a real node a container holds it; here it
would be an ordinary process of the person who runs the simulator.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simulator.node.errors import RefusedPodError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.node.pod import Pod

IMAGE = "gpufence/workload"
MODULE = ("-m", "simulator", "workload")
_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")


def arguments(image: str, command: Sequence[str], args: Sequence[str]) -> tuple[str, ...]:
    """
    Return the workload's arguments; raises RefusedPodError for any other program.
    """
    if not command and _is_workload(image):
        return tuple(args)
    words = (*command, *args)
    if words and _PYTHON.fullmatch(words[0]) and words[1 : len(MODULE) + 1] == MODULE:
        return words[len(MODULE) + 1 :]
    shown = " ".join(words) or f"the command of image {image}"
    raise RefusedPodError(
        f"{shown[:200]} is no simulator workload; this node runs only"
        f" python {' '.join(MODULE)} ..., or image {IMAGE} without a command"
    )


def check_programs(pod: Pod) -> None:
    """
    Raise RefusedPodError unless every container of the pod is a workload.
    """
    for container in pod.containers:
        arguments(container.image, container.command, container.args)


def _is_workload(image: str) -> bool:
    folder, slash, last = image.partition("@")[0].rpartition("/")
    name = f"{folder}{slash}{last.partition(':')[0]}"
    return name == IMAGE or name.endswith(f"/{IMAGE}")
