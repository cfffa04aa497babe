"""`keep OWNER`: nobody releases it before a moment that somebody names."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from gpufence.errors import InvalidError, shown
from gpufence.names import KEEP_UNTIL
from gpufence.times import read_length, read_moment, write_moment
from kube.discovery import Kinds
from kube.workloads import annotate
from kubectl_gpufence.arguments import add_owner
from kubectl_gpufence.verbs.idle.owners import carefully, named_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence keep deploy/worker --for 8h
  kubectl gpufence keep notebook/mine --until 2027-03-01T18:00:00Z
  kubectl gpufence keep worker-7d9f8b6c4d-x2x4k --for 1d      the owner of this pod
  kubectl gpufence keep deploy/worker --clear
"""

_LEAST_SECONDS: Final = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_owner(parser)
    until = parser.add_mutually_exclusive_group(required=True)
    for_help = "from now on: 8h, 2d"
    until.add_argument("--for", dest="length", type=_length, metavar="TIME", help=for_help)
    until_help = "RFC 3339: 2027-03-01T18:00:00Z"
    until.add_argument("--until", type=_moment, metavar="MOMENT", help=until_help)
    until.add_argument("--clear", action="store_true", help="end it: it may be released again")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Write the moment on the owner, with the rights of whoever calls.

    Raises:
        MissingError: there is no such owner.
    """
    until = None if call.clear else write_moment(call.until or time.time() + call.length)
    client = reader.client
    owner = named_owner(client, Kinds(client), call.namespace, call.owner)
    if until is None and KEEP_UNTIL not in owner.annotations:
        output.lines([f"{owner.shown} was not kept: nothing to be done"])
        return 0
    carefully(client, owner, lambda item: annotate(client, item, {KEEP_UNTIL: until}))
    said = "is not kept any longer" if until is None else f"is kept until {until}"
    output.lines([f"{owner.shown} {said}"])
    return 0


def _length(text: str) -> float:
    return _read(lambda: read_length(text, "", least=_LEAST_SECONDS))


def _moment(text: str) -> float:
    moment, now = _read(lambda: read_moment(text, "")), time.time()
    if moment > now:
        return moment
    remedy = f"name a moment after {write_moment(now)}, or --clear to keep it no longer"
    raise argparse.ArgumentTypeError(f"{shown(text)} is over; {remedy}")


def _read(read: Callable[[], float]) -> float:
    """Read a word for argparse, which names the option itself."""
    try:
        return read()
    except InvalidError as error:
        problem = error.problem
        said = f"{shown(problem.value)} {problem.reason}; {problem.remedy}"
        raise argparse.ArgumentTypeError(said) from error
