"""
The webhook's command line: `serve` (the default) and `rewrite`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from webhook.settings import HELP, POLICY_HELP

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRONG = 2


def _listed(settings: Mapping[str, str]) -> str:
    return "".join(f"  {name:36} {text}\n" for name, text in settings.items())


_HELP = f"""\
usage: gpufence-webhook [serve]
       gpufence-webhook rewrite -f FILE [--card 15360Mi] ...

serve      answer the API server's admission reviews until SIGTERM (the default)
rewrite    show what would happen to the pods of a manifest, without a cluster

Settings are environment variables; what stands in brackets holds where one is not set.

The server:
{_listed(HELP)}
What is written into pods, by `rewrite` too:
{_listed(POLICY_HELP)}"""


def main() -> int:
    """
    Run the command that the arguments name; return the exit code.
    """
    command, *arguments = sys.argv[1:] or ["serve"]
    if command in {"-h", "--help", "help"} or (command == "serve" and arguments):
        print(_HELP)
        return 0 if command != "serve" or arguments[0] in {"-h", "--help"} else _WRONG
    try:
        if command == "serve":
            # Each command loads only what it needs: `rewrite` answers in a tenth of a second.
            from kube import read_client_settings  # noqa: PLC0415 (see above)
            from webhook.program import run  # noqa: PLC0415 (see above)

            run(os.environ, read_client_settings(os.environ, user_agent="gpufence-webhook"))
            return 0
        if command == "rewrite":
            from webhook.command import main as rewrite  # noqa: PLC0415 (see above)

            return rewrite(arguments, os.environ, sys.stdin, sys.stdout)
    except GpufenceError as error:
        print(f"gpufence-webhook: {error}", file=sys.stderr)
        return _WRONG
    print(f'gpufence-webhook: no command "{command}"\n\n{_HELP}', file=sys.stderr)
    return _WRONG


if __name__ == "__main__":
    sys.exit(main())
