"""
PURE. What /proc/PID/stat and /proc/PID/cgroup say: which process it is, and whose.

Of the path of a cgroup the pod and the container are read, whatever wrote it: kubelet, systemd,
containerd, CRI-O and cri-dockerd each name their level in their own way, and the agent may see it
from within a cgroup namespace, which cuts its beginning off. What all have in common is the pod's
UID in one segment and the container's id in a later one. Only the leftmost strict match counts:
below its own scope a container may name folders as it likes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.model.use import Owner

_UID = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?\Z"
)
_CONTAINER = re.compile(r"(?:(?:cri-containerd|crio|cri-o|docker)[-:])?([0-9a-f]{64})(?:\.scope)?")
_COLON_FORM = ".slice:"
_DELETED = " (deleted)"
_NEIGHBOUR = "/../"
_LINE_FIELDS = 3

_STATE = 0
_USER, _SYSTEM = 11, 12
_STARTED = 19
_GONE = frozenset("ZXx")


class Stat(NamedTuple):
    """
    `started_ticks` counts from the machine's boot, `cpu_ticks` is the CPU time of all of its
    threads, those that have ended included; what is `gone` has ended but is still listed. Of
    a process that is true of its first thread, while others may run on.
    """

    command: str
    gone: bool
    started_ticks: int
    cpu_ticks: int = 0


def parse_stat(text: str) -> Stat | None:
    """
    Read the line, counting fields from the last parenthesis: a program may be called `a) R (b`.
    """
    head, closed, tail = text.rpartition(")")
    fields = tail.split(None, _STARTED + 1)
    if not closed or len(fields) <= _STARTED or not fields[_STARTED].isdecimal():
        return None
    command = head.partition("(")[2]
    used = fields[_USER], fields[_SYSTEM]
    ticks = sum(int(text) for text in used if text.isdecimal())
    return Stat(command, fields[_STATE] in _GONE, int(fields[_STARTED]), ticks)


def parse_cgroup(text: str) -> Owner | None:
    """Return whose process this is; None where no line tells, or where two lines disagree."""
    # Only "\n" ends a line: the kernel keeps it, and nothing else, out of names of cgroups.
    owners = {owner for line in text.split("\n") if (owner := _of_path(_path_of(line)))}
    named = {owner for owner in owners if owner.pod_uid is not None}
    return _agreed(named or owners)


def _agreed(owners: set[Owner]) -> Owner | None:
    """
    Merge what the hierarchies of cgroup v1 say: some stop at the pod, none may contradict another.
    """
    uids = {owner.pod_uid for owner in owners}
    containers = {owner.container_id for owner in owners} - {None}
    if len(uids) != 1 or len(containers) > 1:
        return None
    return Owner(uids.pop(), next(iter(containers), None))


def _path_of(line: str) -> str:
    """Return the path of a line such as `4:memory:/kubepods`; the path itself may hold colons."""
    fields = line.split(":", _LINE_FIELDS - 1)
    path = fields[-1] if len(fields) == _LINE_FIELDS and fields[0].isdigit() else line
    return path.removesuffix(_DELETED)


def _of_path(path: str) -> Owner | None:
    segments = _segments(path)
    for position, segment in enumerate(segments):
        match = _UID.search(segment)
        if match:
            uid = match[1].replace("_", "-")
            return Owner(uid, _container_in(segments[position + 1 :]))
    neighbour = path.removeprefix(_NEIGHBOUR)
    if neighbour != path and "/" not in neighbour:
        container = _container_in([neighbour])
        return None if container is None else Owner(None, container)
    return None


def _segments(path: str) -> list[str]:
    """Split a path; containerd's `X.slice:cri-containerd:<id>` is two levels in one."""
    segments = []
    for segment in path.split("/"):
        parent, colon, rest = segment.partition(_COLON_FORM)
        segments += [f"{parent}.slice", rest] if colon else [segment]
    return segments


def _container_in(segments: list[str]) -> str | None:
    matches = (_CONTAINER.fullmatch(segment) for segment in segments)
    return next((match[1] for match in matches if match), None)
