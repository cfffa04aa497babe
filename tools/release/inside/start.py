"""What runs first in the plugin's archive, on any python3 that somebody has."""

import sys


def main() -> int:
    """Run the plugin by whose name this file was called."""
    if sys.version_info < (3, 11):  # noqa: UP036 (nothing has installed it, so nothing has asked)
        found = f"{sys.version_info[0]}.{sys.version_info[1]}"
        sys.stderr.write(
            f"kubectl gpufence needs Python >= 3.11, and python3 is {found} here. Remedy: put a "
            f"newer one in front on the PATH, or call it: python3.11 {sys.argv[0]}\n"
        )
        return 2
    # Not before: older Pythons cannot even read these.
    called = sys.argv[0].split("/")[-1]
    if called.startswith("kubectl_complete"):
        from kubectl_gpufence.completion import main as run  # noqa: PLC0415 (see above)
    elif called.startswith("kubectl-inspect"):
        from kubectl_gpufence.gpushare import main as run  # noqa: PLC0415 (see above)
    else:
        from kubectl_gpufence.__main__ import main as run  # noqa: PLC0415 (see above)
    return run()


sys.exit(main())
