"""
`python -m simulator demo`: the story, from nothing to a fenced process, then everything is gone.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from simulator.controlplane import ControlPlaneError
from simulator.demo import burst, driver, eviction, idle, need, story
from simulator.demo.cast import SIMULATED, Cast
from simulator.demo.cast import real as cast_of
from simulator.demo.narrator import Narrator, StoryError
from simulator.demo.stage import built
from simulator.progress import Progress
from simulator.wheels import install
from simulator.wheels.catalog import find_wheels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.demo.stage import Stage


FENCE: Final = "fence"
BURST: Final = "burst"
STORIES: Final = {
    FENCE: eviction.PLAN,
    BURST: burst.PLAN,
    "driver": driver.PLAN,
    "idle": idle.PLAN,
    "need": need.PLAN,
}
TOLD: Final = {"driver": driver.tell, "idle": idle.tell, "need": need.tell}


def main(argv: Sequence[str] | None = None) -> int:
    """Tell the story; 1 where it did not happen."""
    parser = argparse.ArgumentParser(prog="python -m simulator demo", description=__doc__)
    parser.add_argument(
        "--story",
        choices=STORIES,
        default=FENCE,
        help="fence: a pod that takes too much is evicted; burst: a pod borrows, and gives back; "
        "driver: the driver refuses what is too much; idle: a pod that uses nothing makes room; "
        "need: what was measured becomes the limit (default: %(default)s)",
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument(
        "--framework", metavar="NAME", help="play it with a real one: torch, or such as torch-2.10"
    )
    arguments = parser.parse_args(argv)
    if arguments.framework and arguments.story not in {FENCE, BURST}:
        parser.error(f"--framework: the story {arguments.story} is played by simulated ones")
    for number in (signal.SIGTERM, signal.SIGHUP):  # whatever ends it, nothing is left behind
        signal.signal(number, signal.default_int_handler)
    progress = Progress(sys.stdout)
    try:
        cast = SIMULATED if arguments.framework is None else _real(arguments.framework, progress)
        with built(progress, STORIES[arguments.story]) as stage:
            say = Narrator(sys.stdout, stage.plane, stage.plugin_environment)
            if arguments.story == FENCE:
                story.tell(stage, say, cast)
                eviction.tell(stage, say, cast)
            elif arguments.story == BURST:
                burst.tell(stage, say, cast.wheels)
            else:
                TOLD[arguments.story](stage, say)
            if arguments.keep:
                say.chapter("Yours now, until Ctrl-C")
                say.show(_to_try(stage))
                threading.Event().wait()
    except KeyboardInterrupt:
        return 0 if arguments.keep else 130
    except (StoryError, GpufenceError, ControlPlaneError) as error:
        print(f"demo: the story did not happen: {error}", file=sys.stderr)
        return 1
    return 0


def _real(name: str, progress: Progress) -> Cast:
    """See to it that the framework is there; says before it begins how much is to be fetched."""
    wheels = find_wheels(name)
    if wheels.framework != "torch":
        raise StoryError(f"the story is one of PyTorch; {name} is none: use FRAMEWORK=torch")
    install.build([wheels], progress)
    return cast_of(wheels.name)


def _to_try(stage: Stage) -> str:
    """Return what to type in another terminal."""
    plugin = stage.plugin_environment
    path = f"{Path(sys.executable).parent}:{stage.plane.kubectl_path.parent}"
    return "\n".join(
        (
            f"export KUBECONFIG={stage.plane.kubeconfig()} PATH={path}:$PATH",
            " ".join(["export", *(f"{key}={url}" for key, url in plugin.items())]),
            "kubectl get pods -A",
            "kubectl get events -A --field-selector type=Warning",
            "kubectl gpufence top -A --watch",
            "kubectl gpufence dashboard -A",
            "kubectl create deployment ...   in a namespace labelled gpufence.io/mode=evict",
            f"curl http://{stage.agent}/v1/snapshot",
            f"curl http://{stage.agent}/metrics",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
