"""
PURE. Programs that start another one, and which of their words are their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.frameworks.argv import Arg

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)


class Wrapper(NamedTuple):
    """
    A program that starts another: which of its options take a value, how many words it reads
    itself, and the verb with which it does so.
    """

    options: frozenset[str] = frozenset()
    own: int = 0
    verb: str = ""


def _wrapper(*options: str, own: int = 0, verb: str = "") -> Wrapper:
    return Wrapper(frozenset(options), own, verb)


_PLAIN = _wrapper()
_RUN = _wrapper(
    *("-n", "-p", "--name", "--prefix", "--cwd", "--project", "--directory", "--with", "--python"),
    *("--extra", "--group", "--env-file", "--package"),
    verb="run",
)
WRAPPERS: Mapping[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "catatonit", "ddtrace-run"), _PLAIN),
    **dict.fromkeys(("unbuffer", "catchsegv", "trtllm-llmapi-launch", "eatmydata"), _PLAIN),
    **dict.fromkeys(("uv", "conda", "mamba", "micromamba", "poetry", "pdm", "pipenv"), _RUN),
    **dict.fromkeys(("pixi", "hatch", "rye"), _RUN),
    **dict.fromkeys(("gosu", "su-exec", "chroot", "setarch"), _wrapper(own=1)),
    "exec": _wrapper("-a"),
    "env": _wrapper("-u", "--unset", "-C", "--chdir"),
    "nice": _wrapper("-n", "--adjustment"),
    "ionice": _wrapper("-c", "--class", "-n", "--classdata"),
    "chrt": _wrapper(own=1),
    "taskset": _wrapper(own=1),
    "numactl": _wrapper(
        *("-i", "-N", "-m", "-C", "-p", "-w", "-l", "--interleave", "--cpunodebind", "--membind"),
        *("--physcpubind", "--preferred", "--weighted-interleave"),
    ),
    "tini": _wrapper("-p", "-e"),
    "tini-static": _wrapper("-p", "-e"),
    "docker-init": _wrapper("-p", "-e"),
    "dumb-init": _wrapper("-r", "--rewrite"),
    "sudo": _wrapper("-u", "-g", "-C", "-h", "-p"),
    "runuser": _wrapper("-u", "-g", "-G"),
    "setpriv": _wrapper("--reuid", "--regid", "--groups"),
    "stdbuf": _wrapper("-i", "-o", "-e"),
    "timeout": _wrapper("-k", "--kill-after", "-s", "--signal", own=1),
    "flock": _wrapper("-w", "--timeout", "-E", own=1),
    "prlimit": _wrapper(),
    "strace": _wrapper("-e", "-o", "-p", "-s"),
    "nsys": _wrapper(
        *("-o", "--output", "-t", "--trace", "-w", "-c", "-s", "-f", "-y", "-d"), verb="profile"
    ),
    "opentelemetry-instrument": _wrapper(
        "--traces_exporter", "--metrics_exporter", "--service_name"
    ),
}  # fmt: skip
SEARCHED = frozenset(
    (
        *("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "jsrun"),
        *("horovodrun", "torchrun", "deepspeed", "accelerate", "torchx"),
    )
)


def without_options(words: Sequence[Arg], wrapper: Wrapper) -> Sequence[Arg] | None:
    """
    Return what follows a wrapper's own words; None where it starts nothing.
    """
    at, own = 1, wrapper.own
    if wrapper.verb:
        while at < len(words) and words[at].text != wrapper.verb:
            at += 1
        at += 1
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
            continue
        if text.startswith("-") and text != "-":
            at += 2 if text in wrapper.options else 1
        elif ASSIGNMENT.fullmatch(text):
            at += 1
        elif own:
            at, own = at + 1, own - 1
        else:
            return words[at:]
    return None
