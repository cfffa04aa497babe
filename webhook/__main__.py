"""
The webhook's command line: `serve` (the default) and `rewrite`.
"""

from __future__ import annotations

import os
import sys

from gpufence.errors import GpufenceError
from gpufence.settings import help_text
from webhook.settings import WebhookSettings

_WRONG = 2


_USAGE = """\
usage: gpufence-webhook [serve]
       gpufence-webhook rewrite -f FILE [--card 15360Mi] ...

serve      answer the API server's admission reviews until SIGTERM (the default)
rewrite    show what would happen to the pods of a manifest, without a cluster

Settings are environment variables; what stands in brackets holds where one is not set.

"""


def _help() -> str:
    return _USAGE + help_text(WebhookSettings)


def main() -> int:
    """
    Run the command that the arguments name; return the exit code.
    """
    command, *arguments = sys.argv[1:] or ["serve"]
    if command in {"-h", "--help", "help"} or (command == "serve" and arguments):
        print(_help())
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
    print(f'gpufence-webhook: no command "{command}"\n\n{_help()}', file=sys.stderr)
    return _WRONG


if __name__ == "__main__":
    sys.exit(main())
