"""KEDA's programs: pinned, found, and never built from something else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.controlplane import Assets, BuildError
from simulator.controlplane import recipe as recipes
from simulator.keda.build import PIN, ensure, folder_of, read_pin
from simulator.progress import Progress

FAKE_GO = """#!/bin/sh
[ "$1" = version ] && echo go version go1.99.0 linux/amd64 && exit
cat {answer}
"""


def go_that_fetches(folder: Path, answer: dict[str, str]) -> str:
    """Put a Go into a folder that says it fetched something else."""
    (folder / "answer").write_text(json.dumps(answer))
    go = folder / "go"
    go.write_text(FAKE_GO.format(answer=folder / "answer"))
    go.chmod(0o755)
    return str(folder)


def test_the_pin_is_a_line_of_a_go_sum() -> None:
    """Module, version and checksum are read from one place."""
    pin = read_pin()

    assert ("github.com/kedacore/keda/v2", "v2.21.0") == (pin.module, pin.version)
    assert pin.sum.startswith("h1:")


def test_a_pin_of_another_shape_is_refused(tmp_path: Path) -> None:
    """A file that is no line of a go.sum says what it should be."""
    (tmp_path / "keda.sum").write_text("keda v2\n")

    with pytest.raises(BuildError, match="a module, its version and its checksum"):
        read_pin(tmp_path / "keda.sum")


def test_another_pin_has_another_folder(tmp_path: Path) -> None:
    """Programs of one version are never taken for those of another."""
    pin = read_pin(PIN)

    assert folder_of(pin, tmp_path) != folder_of(replace(pin, sum="h1:other"), tmp_path)


def test_what_is_there_is_not_built(tmp_path: Path) -> None:
    """Programs in the cache are found without Go."""
    assets = Assets(recipes.read_recipe(), tmp_path, None, {"PATH": ""}, ())
    folder = folder_of(read_pin(), tmp_path)
    (folder / "crds").mkdir(parents=True)
    for name in ("keda-operator", "keda-adapter"):
        (folder / name).touch()

    assert folder / "keda-operator" == ensure(assets, Progress()).operator


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"Error": "unknown revision"}, "unknown revision"),
        ({"Dir": "/somewhere", "Sum": "h1:forged="}, "has the checksum h1:forged="),
    ],
)
def test_another_module_is_not_built(tmp_path: Path, answer: dict[str, str], said: str) -> None:
    """What Go fetched is compared with the pin before anything of it runs."""
    places = {"PATH": f"{go_that_fetches(tmp_path, answer)}:/usr/bin:/bin", "HOME": str(tmp_path)}
    assets = Assets(recipes.read_recipe(), tmp_path / "cache", None, places, ())

    with pytest.raises(BuildError, match=said):
        ensure(assets, Progress())
