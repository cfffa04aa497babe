"""
Pin a release of older Kubernetes: `python -m simulator.controlplane.pins v1.30.14`.

Prints what belongs into `go/versions.sum`: Kubernetes' own line, and below it those of the releases
of its staging modules. Go asks its checksum database, unless the environment says otherwise.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from simulator.controlplane.build import Assets
from simulator.controlplane.errors import BuildError, ControlPlaneError
from simulator.controlplane.recipe import BUILD_ENVIRONMENT, SOURCES
from simulator.progress import Progress

_KUBERNETES: Final = "k8s.io/kubernetes"
_STAGING: Final = re.compile(r"^\s*(k8s\.io/[a-z-]+) => \./staging/", re.MULTILINE)
_SAMPLES: Final = "k8s.io/sample-"  # no program is made of these


def lines(go: Path, version: str) -> list[str]:
    """Have Go fetch everything, and return the checksums that it found."""
    (kubernetes,) = _download(go, f"{_KUBERNETES}@{version}")
    own = (Path(kubernetes["Dir"]) / "go.mod").read_text(encoding="utf-8")
    released = "v0." + version.removeprefix("v1.")
    staging = [name for name in _STAGING.findall(own) if not name.startswith(_SAMPLES)]
    found = _download(go, *(f"{name}@{released}" for name in sorted(staging)))
    pinned = [f"{_KUBERNETES} {version} {kubernetes['Sum']}"]
    for one in found:
        pinned.append(f"{one['Path']} {released} {one['Sum']}")
        pinned.append(f"{one['Path']} {released}/go.mod {one['GoModSum']}")
    return pinned


def _download(go: Path, *modules: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(go), "mod", "download", "-json", *modules],
        cwd=SOURCES,
        env={**os.environ, **BUILD_ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    decoder, text = json.JSONDecoder(), done.stdout.strip()
    answers = []
    while text:
        answer, end = decoder.raw_decode(text)
        answers.append(answer)
        text = text[end:].lstrip()
    troubles = [answer["Error"] for answer in answers if "Error" in answer]
    if troubles or not answers:
        raise BuildError(f"Go could not fetch everything: {'; '.join(troubles)}")
    return answers


def main(argv: Sequence[str]) -> int:
    try:
        go = Assets.from_environment(os.environ).go(Progress(sys.stderr))
        for version in argv:
            sys.stdout.write("".join(f"{line}\n" for line in lines(go, version)))
    except ControlPlaneError as error:
        sys.stderr.write(f"python -m simulator.controlplane.pins: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
