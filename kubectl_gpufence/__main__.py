"""`kubectl gpufence`: reads a call, connects to the cluster, and runs the verb."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from kubectl_gpufence import verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from kubectl_gpufence.output import Output

_OBJECTS_BETWEEN_LOOKS = 200_000


def main() -> int:
    """
    Run the call that the arguments make: 0 is well, 1 is trouble, 2 a call that cannot be read.
    """
    call = verbs.parse(sys.argv[1:] or ["--help"])
    # Thousands of pods are millions of objects, nearly all of which are there until the end: to
    # look over them again and again, as is usual, takes longer than to read them.
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    # Not before: what follows takes ten times as long to load as --help takes to show.
    try:
        from kubectl_gpufence.output import ended, output_to  # noqa: PLC0415 (see above)
    except ModuleNotFoundError as error:
        sys.exit(f"kubectl gpufence: {error.name} is not installed: pip install 'gpufence[plugin]'")

    output = output_to(sys.stdout, sys.stderr, os.environ, sys.stdin)
    return ended("kubectl gpufence", lambda: run(call, os.environ, output))


def run(call: argparse.Namespace, environ: Mapping[str, str], output: Output) -> int:
    """
    Connect, run the verb, and return its exit code.

    Raises:
        GpufenceError: there is no cluster, or it refuses what all else stands on, or what was named
            is not there.
    """
    from kubectl_gpufence.reader import reading  # noqa: PLC0415 (see main)

    with reading(call, environ, output.progress) as reader:
        if not call.namespace and not getattr(call, "all_namespaces", False):
            call.namespace = reader.client.namespace or "default"
        code: int = call.run(call, reader, output)
        return code


if __name__ == "__main__":
    sys.exit(main())
