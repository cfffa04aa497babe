"""
`python -m simulator demo`: the story, from nothing to a fenced process, then everything is gone.
"""

from __future__ import annotations

import argparse
import sys
import threading
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from simulator.controlplane import ControlPlaneError
from simulator.demo.narrator import Narrator, StoryError
from simulator.demo.stage import built
from simulator.demo.story import tell
from simulator.progress import progress_on

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """
    Tell the story; 1 where it did not happen.
    """
    parser = argparse.ArgumentParser(prog="python -m simulator demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    arguments = parser.parse_args(argv)
    try:
        with built(progress_on(sys.stdout)) as stage:
            say = Narrator(sys.stdout, stage.plane)
            tell(stage, say)
            if arguments.keep:
                say.chapter("Yours now, until Ctrl-C")
                say.show(f"export KUBECONFIG={stage.plane.kubeconfig()}\nkubectl get pods -A")
                threading.Event().wait()
    except KeyboardInterrupt:
        return 0 if arguments.keep else 130
    except (StoryError, GpufenceError, ControlPlaneError) as error:
        print(f"demo: the story did not happen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
