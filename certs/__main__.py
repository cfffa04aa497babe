"""
`gpufence-certs ensure | status | rotate`: the webhook's certificates, without a person.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from typing import TYPE_CHECKING

from certs.bundle import Injector
from certs.dial import call_each
from certs.ensure import Run, RunOptions
from certs.facts import look_at
from certs.ports import World
from certs.settings import PREFIX, CertsSettings, help_epilog, read_endpoints
from certs.status import status_of
from certs.store import Store
from gpufence.errors import GpufenceError, SettingsError
from gpufence.settings import read_settings, unknown_settings
from kube import connect, read_client_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kube import Client

_WELL, _LOOK, _MISTAKEN = 0, 1, 2


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def chance(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, guards nothing


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run one command; 0 is well, 1 asks somebody to look, 2 is a mistake in the call."""
    arguments = _parser().parse_args(argv)
    try:
        settings = read_settings(CertsSettings, environ)
        for name in unknown_settings(CertsSettings, environ, PREFIX):
            _warn(f"{name} is no setting of gpufence-certs; see gpufence-certs --help")
        options = _options(arguments, settings)
        client = connect(read_client_settings(environ, user_agent="gpufence-certs"))
        if arguments.command == "status":
            return _status(client, settings)
        return _ensure(client, settings, options)
    except SettingsError as error:
        _warn(str(error))
        return _MISTAKEN
    except GpufenceError as error:
        _warn(str(error))
        return _LOOK
    except KeyboardInterrupt:
        _warn("stopped; whatever was begun goes on with the next run")
        return _LOOK


def _options(arguments: argparse.Namespace, settings: CertsSettings) -> RunOptions:
    return RunOptions(
        force_leaf=getattr(arguments, "leaf", False),
        force_ca=getattr(arguments, "ca", False),
        patience=settings.patience,
        endpoints=read_endpoints(getattr(arguments, "endpoints", ""), "--endpoints"),
    )


def _ensure(client: Client, settings: CertsSettings, options: RunOptions) -> int:
    world = World(client, RealClock(), call_each)
    report = Run(world, settings.names, options, _say).ensure()
    if not report.done:
        _say("nothing to do")
    for text in report.pending:
        _say(f"the old CA stays trusted until a later run: {text}")
    return _WELL


def _status(client: Client, settings: CertsSettings) -> int:
    store = Store(client, settings.names.namespace)
    leaf, ca = store.read_leaf(), store.read_ca()
    status = status_of(
        look_at(ca.pair, leaf.pair, leaf.authority),
        Injector(client).read(),
        ca.pair.certificate if ca.pair else b"",
        settings.names.all,
        time.time(),
    )
    print(status.table)
    return _LOOK if status.alarming else _WELL


def _say(text: str) -> None:
    print(f"gpufence-certs: {text}", flush=True)


def _warn(text: str) -> None:
    print(f"gpufence-certs: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufence-certs",
        description="Keep the webhook's certificates in order. Run it as often as you like.",
        epilog=help_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    ensure = commands.add_parser("ensure", help="issue or renew whatever is missing or due")
    commands.add_parser("status", help="print a table; exit 1 where somebody should look")
    rotate = commands.add_parser("rotate", help="renew now, due or not")
    which = rotate.add_mutually_exclusive_group(required=True)
    which.add_argument("--leaf", action="store_true", help="a new serving certificate")
    which.add_argument("--ca", action="store_true", help="a new CA, and with it a new leaf")
    for command in (ensure, rotate):
        command.add_argument(
            "--endpoints",
            default="",
            metavar="HOST:PORT,...",
            help="ask these which certificate they serve, instead of the Service's EndpointSlices",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
