"""
Build the control plane's programs ahead of need: `python -m simulator build`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from simulator.controlplane.build import Assets
from simulator.controlplane.build.recipe import COMPONENTS, component
from simulator.controlplane.errors import BuildError, ControlPlaneError
from simulator.progress import progress_on

# The kubelet serves the one-node cluster only, which needs root; it is built when asked for.
USUAL = tuple(known.name for known in COMPONENTS if known.name != "kubelet")


def parser() -> argparse.ArgumentParser:
    """
    Describe the command line.
    """
    command = argparse.ArgumentParser(
        prog="python -m simulator build",
        description="Build programs of the Kubernetes control plane from pinned sources, unless"
        " KUBEBUILDER_ASSETS or the cache folder has them. The first time takes about ten minutes"
        " on two cores and 5 GiB of disk; after that it takes no time.",
    )
    command.add_argument(
        "components",
        metavar="component",
        nargs="*",
        type=_known,
        help=f"{', '.join(known.name for known in COMPONENTS)}; if none is named, all but kubelet",
    )
    return command


def _known(name: str) -> str:
    try:
        return component(name).name
    except BuildError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(argv: Sequence[str]) -> int:
    """
    Build what is missing and print where each program is.
    """
    names = parser().parse_args(argv).components or USUAL
    try:
        paths = Assets.from_environment(os.environ).ensure(names, progress_on(sys.stderr))
    except ControlPlaneError as error:
        print(f"python -m simulator build: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what was built so far stays", file=sys.stderr)
        return 130
    for path in paths.values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
