"""What can be typed after `scale`."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING

from kubectl_gpufence.options import add_verb, name, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALE = """\
examples:
  kubectl gpufence scale deploy/quality --queue quality --seconds-per-message 0.5 --target 5s
  kubectl gpufence scale deploy/quality --queue quality --target 3s \\
      --queue-kind prometheus --prometheus http://prometheus.monitoring:9090

It prints what KEDA needs, for you to read and to apply; nothing is changed. How many seconds a
message takes of one replica is measured where Prometheus has the agents' metrics beside those of
the queue. docs/scaling.md says why there are two triggers.
"""
_QUEUE_NAME = re.compile(r"[-\w.:/]{1,255}", re.ASCII)
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[-\w.]+)?", re.ASCII)
_URL = re.compile(r"https?://[^\s/\"']+[^\s\"']*", re.ASCII)


def add_scale(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    scale = add_verb(verbs, "scale", "KEDA's objects that scale an owner by its queue", _SCALE)
    scale.add_argument("owner", metavar="KIND/NAME", type=_owner, help="such as deploy/quality")
    scale.add_argument("-n", "--namespace", type=name, metavar="NAMESPACE")
    scale.add_argument(
        "--queue", required=True, type=_text(_QUEUE_NAME, "the name of a queue"), metavar="NAME"
    )
    scale.add_argument(
        "--target",
        required=True,
        type=seconds,
        metavar="TIME",
        help="how long what waits may take to be worked off, such as 5s",
    )
    scale.add_argument(
        "--seconds-per-message",
        dest="message",
        type=_message,
        default=None,
        metavar="N",
        help="what a message takes of one replica, such as 0.5; auto measures it (auto)",
    )
    scale.add_argument(
        "--guess",
        type=_positive,
        default=1.0,
        metavar="N",
        help="the same until something has been measured (1)",
    )
    _add_queue(scale)
    _add_bounds(scale)


def _add_queue(scale: argparse.ArgumentParser) -> None:
    scale.add_argument(
        "--queue-kind",
        choices=("rabbitmq", "prometheus"),
        default="rabbitmq",
        help="who is asked for the queue: the broker by KEDA, or its metrics in Prometheus",
    )
    scale.add_argument(
        "--host-secret",
        type=_text(_SECRET, "a Secret, and its key after a slash"),
        default="rabbitmq/host",
        metavar="NAME/KEY",
        help="where the broker's address is, in the owner's namespace (rabbitmq/host)",
    )
    scale.add_argument("--prometheus", type=_text(_URL, "an address"), metavar="URL")
    scale.add_argument(
        "--waiting", metavar="PROMQL", help="messages that wait, instead of RabbitMQ's metric"
    )
    scale.add_argument(
        "--done", metavar="PROMQL", help="messages done each second, instead of RabbitMQ's"
    )


def _add_bounds(scale: argparse.ArgumentParser) -> None:
    scale.add_argument(
        "--min", dest="least", type=_count, default=0, metavar="N", help="replicas always (0)"
    )
    scale.add_argument(
        "--max",
        dest="most",
        type=_most,
        default=None,
        metavar="N",
        help="replicas at most; auto is as many as there are and fit (auto)",
    )
    scale.add_argument(
        "--cooldown",
        type=seconds,
        default=900.0,
        metavar="TIME",
        help="without work before the last replica goes (15m)",
    )
    scale.add_argument(
        "--activity",
        type=_text(_URL, "an address"),
        metavar="URL",
        help="where KEDA reaches the controller, if not by its Service",
    )
    scale.add_argument(
        "--activity-auth",
        choices=("token", "none"),
        default="token",
        help="as GPUFENCE_ACTIVITY_AUTH of the controller (token)",
    )
    scale.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")


def _owner(text: str) -> str:
    kind, separator, named = text.partition("/")
    if not separator or not kind:
        raise argparse.ArgumentTypeError(f'"{text}" names no kind; write such as deploy/{text}')
    name(kind.lower())
    name(named)
    return text


def _text(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if pattern.fullmatch(text):
            return text
        raise argparse.ArgumentTypeError(f'"{text}" is not {what}')

    return read


def _message(text: str) -> float | None:
    return None if text == "auto" else _positive(text)


def _positive(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of seconds; write such as 0.5')
    return value


def _most(text: str) -> int | None:
    return None if text == "auto" else _count(text)


def _count(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,6}", text):
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no number of replicas')
