"""Helm and cosign: pinned, found, and never built from something else."""

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.controlplane import recipe as recipes
from simulator.progress import Progress
from simulator.published import COSIGN, HELM, Published

PROGRAMS = pytest.mark.parametrize("program", [HELM, COSIGN], ids=lambda one: one.name)


@pytest.mark.parametrize(
    ("program", "module"), [(HELM, "helm.sh/helm/v4"), (COSIGN, "github.com/sigstore/cosign/v3")]
)
def test_the_pin_is_a_line_of_a_go_sum(program: Published, module: str) -> None:
    """Module, version and checksum are read from one place."""
    pin = program.read_pin()

    assert module == pin.module
    assert pin.sum.startswith("h1:")


@PROGRAMS
def test_another_pin_has_another_folder(program: Published, tmp_path: Path) -> None:
    """A program of one version is never taken for that of another."""
    pin = program.read_pin()
    other = replace(pin, sum="h1:other")

    assert program.folder_of(pin, tmp_path) != program.folder_of(other, tmp_path)


@PROGRAMS
def test_what_is_there_is_not_built(program: Published, tmp_path: Path) -> None:
    """A program in the cache is found without Go."""
    assets = Assets(recipes.read_recipe(), tmp_path, None, {"PATH": ""}, ())
    missing = program.find(assets)
    folder = program.folder_of(program.read_pin(), tmp_path)
    folder.mkdir(parents=True)
    (folder / program.name).touch()

    assert (None, folder / program.name) == (missing, program.find(assets))
    assert folder / program.name == program.ensure(assets, Progress())
