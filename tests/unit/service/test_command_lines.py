"""Wrong arguments, of every program alike."""

import argparse
import gc
from collections.abc import Callable

import pytest

from agent.__main__ import _parser as agent
from certs.__main__ import _parser as certs
from controller.__main__ import _parser as controller
from kubectl_gpufence import gpushare, verbs
from webhook.__main__ import main as run_webhook
from webhook.__main__ import parser as webhook

Parse = Callable[[list[str]], argparse.Namespace]
PROGRAMS: dict[str, tuple[Parse, list[str], str]] = {
    "agent": (agent().parse_args, ["chekc"], "check"),
    "agent's option": (agent().parse_args, ["check", "--ouput=json"], "--output"),
    "certs": (certs().parse_args, ["rotate", "--ca", "--endpiont=x"], "--endpoints"),
    "certs' command": (certs().parse_args, ["statsu"], "status"),
    "controller": (controller().parse_args, ["rnu"], "run"),
    "webhook": (webhook().parse_args, ["rewrite", "-f", "-", "--mode", "evcit"], "evict"),
    "webhook's option": (webhook().parse_args, ["rewrite", "-f", "-", "--strit"], "--strict"),
    "plugin": (verbs.parse, ["doctr"], "doctor"),
    "gpushare": (gpushare.parse, ["--detials"], "--details"),
}


@pytest.mark.parametrize(("parse", "typed", "meant"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_may_have_been_meant_is_named(
    parse: Parse, typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong command, option or choice ends with 2, and with the nearest right one."""
    with pytest.raises(SystemExit) as ended:
        parse(typed)

    assert 2 == ended.value.code
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_webhook_that_cannot_serve_leaves_the_collector_on() -> None:
    """It loads without one; a setting that cannot work ends it before it would serve."""
    code = run_webhook(["serve"], {"GPUFENCE_LISTEN": "nowhere"})

    assert (2, True) == (code, gc.isenabled())
