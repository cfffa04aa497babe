"""
`kubectl gpufence`: top, explain, report, doctor, inspect.
"""

from __future__ import annotations

import os
import sys

from kubectl_gpufence.arguments import parse

_TROUBLE = 1
_INTERRUPTED = 130


def main() -> int:
    """
    Run the call that the arguments make: 0 is well, 1 is trouble, 2 a call that cannot be read.
    """
    call = parse(sys.argv[1:] or ["--help"])
    # Not before: what follows takes ten times as long to load as --help takes to show.
    from gpufence.errors import GpufenceError  # noqa: PLC0415 (see above)
    from kubectl_gpufence.program import run  # noqa: PLC0415 (see above)
    from kubectl_gpufence.terminal import terminal_for  # noqa: PLC0415 (see above)

    try:
        return run(call, os.environ, terminal_for(sys.stdout, sys.stderr, os.environ))
    except GpufenceError as error:
        from kubectl_gpufence.cluster import advice  # noqa: PLC0415 (only now of use)

        print(f"kubectl gpufence: {advice(error)}", file=sys.stderr)
        return _TROUBLE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # `| head` has seen enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
