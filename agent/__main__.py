"""
The agent's command line: `run` (the default), `snapshot` and `check`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRONG = 2
_HELP_FLAGS = frozenset({"-h", "--help", "help"})
_USAGE = """\
usage: gpufence-agent [run]
       gpufence-agent snapshot [-o table|json]
       gpufence-agent check [-o table|json]

run        measure this node's cards and evict who breaks a limit, until SIGTERM (the default)
snapshot   look at this machine's cards and processes once, without a cluster
check      say whether this node can be enforced, with a remedy for each thing missing
"""


def _listed(settings: Mapping[str, str]) -> str:
    return "".join(f"  {name:40} {text}\n" for name, text in settings.items())


def _help() -> str:
    # Only who asks for help pays for it: the tables are made from every part's settings.
    from agent.settings import (  # noqa: PLC0415 (see above)
        DAMPING_HELP,
        HELP,
        POLICY_HELP,
        SAMPLER_HELP,
    )

    return f"""{_USAGE}
Settings are environment variables; what stands in brackets holds where one is not set.

The program:
{_listed(HELP)}
Who has to go, and when:
{_listed(POLICY_HELP)}
What is said about it:
{_listed(DAMPING_HELP)}
How the cards are measured:
{_listed(SAMPLER_HELP)}"""


def main() -> int:
    """
    Run the command that the arguments name; return the exit code.
    """
    command, *arguments = sys.argv[1:] or ["run"]
    if command in _HELP_FLAGS:
        print(_help())
        return 0
    try:
        if command == "run":
            return _run(arguments)
        if command == "snapshot":
            from agent.once import main as snapshot  # noqa: PLC0415 (each loads what it needs)

            return snapshot(arguments, os.environ, sys.stdout)
        if command == "check":
            from agent.check import main as check  # noqa: PLC0415 (each loads what it needs)

            return check(arguments, os.environ, sys.stdout)
    except GpufenceError as error:
        print(f"gpufence-agent: {error}", file=sys.stderr)
        return _WRONG
    print(f'gpufence-agent: no command "{command}"\n\n{_USAGE}', file=sys.stderr)
    return _WRONG


def _run(arguments: list[str]) -> int:
    if arguments:
        asked = arguments[0] in _HELP_FLAGS
        print(_help() if asked else _USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else _WRONG
    from agent.program import run  # noqa: PLC0415 (each command loads what it needs)
    from kube import read_client_settings  # noqa: PLC0415 (each command loads what it needs)

    run(os.environ, read_client_settings(os.environ, user_agent="gpufence-agent"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
