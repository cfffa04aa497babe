"""`gpufence-certs ensure | renew | issue | status | rotate`: the webhook's certificates."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Protocol

from certs import account
from certs.bundle import Injector
from certs.ensure import Run, RunOptions, TrustMode
from certs.facts import look_at
from certs.overlap import call_each
from certs.ports import World
from certs.renewal import CLOCK_SKEW_SECONDS
from certs.settings import PREFIX, CertsSettings, help_epilog, read_endpoints
from certs.status import status_of
from certs.store import SecretStore
from gpufence.arguments import Parser
from gpufence.errors import GpufenceError, SettingsError
from gpufence.names import CERTS_INSTALL
from gpufence.settings import read_settings, unknown_settings
from gpufence.text import duration
from kube import connect, read_client_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube import Client

_WELL, _LOOK, _MISTAKEN = 0, 1, 2
_TRUST = {"renew": TrustMode.CHECK, "issue": TrustMode.LATER}


class Dated(Protocol):
    """The part of `kube.Client` that says what time it is there."""

    def date(self) -> float | None: ...


class ServerClock:
    """
    The API server's time, asked for once and carried on by a clock that nobody sets.

    The clock of the node where a job happens to run may be days off: its leaf would be refused
    until that day comes, and a CA that is well would look as if it came from the future.
    """

    def __init__(self, server: Dated, say: Callable[[str], None]) -> None:
        self._server = server
        self._say = say
        self._began: float | None = None

    def now(self) -> float:
        if self._began is None:
            self._began = self._asked() - self.monotonic()
        return self._began + self.monotonic()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def chance(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, guards nothing

    def _asked(self) -> float:
        own, there = time.time(), self._server.date()
        if there is None:
            self._say("the API server does not say what time it is: this machine's clock counts")
            return own
        off = own - there
        if abs(off) > CLOCK_SKEW_SECONDS:
            which = "ahead of" if off > 0 else "behind"
            self._say(
                f"the clock of this machine is {duration(abs(off))} {which} the API server's, "
                "which counts"
            )
        return there


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
        if _tidies(arguments) and not account.is_at_work(client, settings.namespace):
            _remove_account(client, settings)
        pending = _ensure(client, settings, options)
        if getattr(arguments, "remove_install_account", False):
            if pending:
                return _LOOK  # its Job tries again, with the right that it takes
            _remove_account(client, settings)
    except SettingsError as error:
        _warn(str(error))
        return _MISTAKEN
    except GpufenceError as error:
        _warn(str(error))
        return _LOOK
    except KeyboardInterrupt:
        _warn("stopped; whatever was begun goes on with the next run")
        return _LOOK
    return _WELL


def _tidies(arguments: argparse.Namespace) -> bool:
    return arguments.command == "renew" and not arguments.keep_install_account


def _options(arguments: argparse.Namespace, settings: CertsSettings) -> RunOptions:
    return RunOptions(
        trust=_TRUST.get(arguments.command, TrustMode.WRITE),
        force_leaf=getattr(arguments, "leaf", False),
        force_ca=getattr(arguments, "ca", False),
        patience=settings.patience,
        endpoints=read_endpoints(getattr(arguments, "endpoints", ""), "--endpoints"),
    )


def _ensure(client: Client, settings: CertsSettings, options: RunOptions) -> tuple[str, ...]:
    world = World(client, ServerClock(client, _warn), call_each)
    report = Run(world, settings.names, options, _say).ensure()
    if not report.done:
        _say("nothing to do")
    for text in report.pending:
        _say(f"the old CA stays trusted until a later run: {text}")
    return report.pending


def _status(client: Client, settings: CertsSettings) -> int:
    store = SecretStore(client, settings.names.namespace)
    leaf, ca = store.read_leaf(), store.read_ca()
    status = status_of(
        look_at(ca.pair, leaf.pair, leaf.authority),
        Injector(client).read(),
        ca.pair.certificate if ca.pair else b"",
        settings.names.all,
        ServerClock(client, _warn).now(),
    )
    print(status.table)
    return _LOOK if status.alarming else _WELL


def _remove_account(client: Client, settings: CertsSettings) -> None:
    if removed := account.remove(client, settings.namespace):
        _say(f"removed {CERTS_INSTALL}: {', '.join(removed)}")


def _say(text: str) -> None:
    print(f"gpufence-certs: {text}", flush=True)


def _warn(text: str) -> None:
    print(f"gpufence-certs: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gpufence-certs",
        description="Keep the webhook's certificates in order. Run it as often as you like.",
        epilog=help_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    ensure = commands.add_parser("ensure", help="issue or renew whatever is missing or due")
    ensure.add_argument(
        "--remove-install-account",
        action="store_true",
        help=f"delete {CERTS_INSTALL} in the end: its right on the webhook configuration, its "
        "Job and its account",
    )
    renew = commands.add_parser("renew", help="renew the leaf, under the CA that is there; daily")
    renew.add_argument(
        "--keep-install-account",
        action="store_true",
        help=f"leave {CERTS_INSTALL} to the tool that applies it again and again",
    )
    commands.add_parser("issue", help="the same, and a CA where the API server trusts none yet")
    commands.add_parser("status", help="print a table; exit 1 where something needs attention")
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
