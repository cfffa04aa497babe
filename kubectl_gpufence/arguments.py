"""The options of every verb, and how times, names and amounts that are typed are read."""

from __future__ import annotations

import argparse
import re
from typing import Final

from gpufence.errors import shown

PROGRAM: Final = "kubectl gpufence"
AGENTS: Final = "GPUFENCE_AGENTS"  # NODE=URL,...
CONTROLLER: Final = "GPUFENCE_CONTROLLER"

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FOREVER = 86_400.0


def seconds(text: str) -> float:
    """Read a time as kubectl writes it: 5s, 1m30s, 500ms, or a bare number of seconds."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text, re.ASCII):
        raise argparse.ArgumentTypeError(f'"{text}" is no time; write one such as 5s or 1m30s')
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def patience(text: str) -> float:
    """Read a timeout; zero means none, as for kubectl."""
    return min(seconds(text) or _FOREVER, _FOREVER)


def interval(text: str) -> float:
    """Read the time between two looks, a day at most."""
    return min(seconds(text), _FOREVER)


def add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="instead of KUBECONFIG")
    parser.add_argument("--context", metavar="NAME", help="instead of the current context")
    parser.add_argument(
        "--request-timeout",
        type=patience,
        default=10.0,
        metavar="TIME",
        help="for each request, such as 5s or 1m (10s); 0: no timeout",
    )
    parser.add_argument(
        "--agents",
        action="append",
        default=[],
        metavar="NODE=URL",
        help=f"ask this agent here, past the API server, and no other; instead of {AGENTS}",
    )
    parser.add_argument(
        "--controller", metavar="URL", help=f"ask the controller here; instead of {CONTROLLER}"
    )


def add_scope(parser: argparse.ArgumentParser) -> None:
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        type=name,
        metavar="NAMESPACE",
        help="instead of the context's",
    )
    scope.add_argument("-A", "--all-namespaces", action="store_true")


def pod_name(text: str) -> str:
    for prefix in ("pod/", "pods/"):
        text = text.removeprefix(prefix)
    return name(text)


def node_name(text: str) -> str:
    for prefix in ("node/", "nodes/"):
        text = text.removeprefix(prefix)
    return name(text)


def name(text: str) -> str:
    if re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text, re.ASCII):
        return text
    remedy = "names have small letters, digits, - and . alone, as `kubectl get` shows them"
    raise argparse.ArgumentTypeError(f"{shown(text)} is no name of an object; {remedy}")


def add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    """Offer forms of the answer, the first where nobody asks for one."""
    parser.add_argument("-o", "--output", choices=forms, default=forms[0])


def add_interval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=interval, default=2.0, metavar="TIME", help="between looks (2s)"
    )


def add_namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", type=name, metavar="NAMESPACE")


def add_owner(parser: argparse.ArgumentParser) -> None:
    """Take the owner that a verb is about."""
    parser.add_argument(
        "owner", metavar="OWNER", type=owner, help="deploy/NAME, sts/NAME, ..., or a pod's name"
    )
    add_namespace(parser)


def owner(text: str) -> str:
    kind, separator, of_kind = text.rpartition("/")
    name(of_kind)
    if separator:
        name(kind.lower())
    return text
