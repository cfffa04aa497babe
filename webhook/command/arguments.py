"""
What the `rewrite` command can be told.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.cards import read_capability
from gpufence.errors import InvalidError, Problem
from gpufence.mode import MODES
from gpufence.quantity import read_bytes
from gpufence.settings import help_text, read_settings
from webhook.settings import PodSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.policy import WebhookPolicy

FORMATS = ("explain", "yaml", "patch", "json")
_EXIT_CODES = """
exit code: 0 well, 1 a pod would be refused, 2 the call or the manifest cannot be read
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gpufence-webhook rewrite",
        description="Show what gpufence would do to the pods of a manifest, without a cluster.",
        epilog=help_text(PodSettings, "settings from the environment, as for the server:")
        + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="manifest with pods, or controllers of pods; - is standard input; repeatable",
    )
    parser.add_argument("--card", metavar="MEMORY", help="memory of the card, such as 15360Mi")
    parser.add_argument("--compute-capability", metavar="MAJOR.MINOR", help="such as 7.5")
    parser.add_argument(
        "--mode", choices=MODES, default="cap", help="the namespace's (default cap)"
    )
    parser.add_argument(
        "--namespace-annotation",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an annotation of the namespace; repeatable",
    )
    parser.add_argument("-o", "--output", choices=FORMATS, default="explain")
    return parser.parse_args(arguments)


def policy_for(
    arguments: argparse.Namespace, environ: Mapping[str, str], hook: str
) -> WebhookPolicy:
    """
    Combine the settings of the environment with what the call says about the card.
    """
    policy = read_settings(PodSettings, environ).policy(hook)
    default = policy.default
    if arguments.card is not None:
        memory = read_bytes(arguments.card, "--card")
        if not memory:
            raise InvalidError(Problem("--card", arguments.card, "is no card", "such as 15360Mi"))
        default = default._replace(memory_bytes=memory)
    if arguments.compute_capability is not None:
        capability = read_capability(arguments.compute_capability)
        if capability is None:
            text = arguments.compute_capability
            remedy = "write major.minor, such as 7.5"
            raise InvalidError(
                Problem("--compute-capability", text, "is no compute capability", remedy)
            )
        default = default._replace(compute_capability=capability)
    return replace(policy, default=default)


def namespace_of(arguments: argparse.Namespace) -> dict[str, str]:
    """
    Read the annotations of the namespace.
    """
    found = {}
    for text in arguments.namespace_annotation:
        key, equals, value = text.partition("=")
        if not (key and equals):
            remedy = f"write key=value, such as {names.MEMORY}=6Gi"
            raise InvalidError(Problem("--namespace-annotation", text, "has no value", remedy))
        found[key] = value
    return found
