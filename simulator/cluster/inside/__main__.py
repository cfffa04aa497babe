"""
Be the first program of a cluster's machine: `python -m simulator.cluster.inside SETUP_FILE`.

Whoever started the machine ends it from outside; this program ends by itself only when a part of
the cluster did.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from simulator.cluster.inside.keeper import NodeKeeper
from simulator.cluster.setup import read_setup
from simulator.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

_WATCH_SECONDS = 0.5
_TAIL = 2000


def main(argv: Sequence[str]) -> int:
    """Start the cluster, say so in a file, and watch over it."""
    setup = read_setup(Path(argv[0]))
    try:
        with ExitStack() as undo:
            keeper = NodeKeeper(setup, os.environ, Progress(sys.stderr))
            port = keeper.start(undo)
            aside = setup.ready.with_suffix(".new")
            aside.write_text(str(port))
            aside.replace(setup.ready)
            while not keeper.ended():
                time.sleep(_WATCH_SECONDS)
            for log in keeper.ended():
                words = log.read_text(errors="replace")[-_TAIL:]
                print(f"{log.stem} ended; its last words:\n{words}", file=sys.stderr)
    except (GpufenceError, OSError, subprocess.SubprocessError) as error:
        print(f"the cluster: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
