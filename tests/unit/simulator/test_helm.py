"""
Helm: pinned, found, and never built from something else.
"""

from dataclasses import replace
from pathlib import Path

from simulator.controlplane import Assets
from simulator.controlplane import recipe as recipes
from simulator.helm import ensure, folder_of, read_pin
from simulator.progress import Progress


def test_the_pin_is_a_line_of_a_go_sum() -> None:
    """
    Module, version and checksum are read from one place.
    """
    pin = read_pin()

    assert "helm.sh/helm/v4" == pin.module
    assert pin.sum.startswith("h1:")


def test_another_pin_has_another_folder(tmp_path: Path) -> None:
    """
    A program of one version is never taken for that of another.
    """
    pin = read_pin()

    assert folder_of(pin, tmp_path) != folder_of(replace(pin, sum="h1:other"), tmp_path)


def test_what_is_there_is_not_built(tmp_path: Path) -> None:
    """
    A program in the cache is found without Go.
    """
    assets = Assets(recipes.read_recipe(), tmp_path, None, {"PATH": ""}, ())
    folder = folder_of(read_pin(), tmp_path)
    folder.mkdir(parents=True)
    (folder / "helm").touch()

    assert folder / "helm" == ensure(assets, Progress())
