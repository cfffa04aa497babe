"""
Environments of frameworks: which there are, where they are, and what is said of those missing.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from gpufence.errors import InvalidError
from simulator.progress import Progress
from simulator.wheels import __main__ as shell
from simulator.wheels import install
from simulator.wheels.catalog import WHEEL_SETS, find_wheels
from simulator.wheels.install import WheelsError
from simulator.wheels.launch import visible

TORCH = find_wheels("torch-2.10")


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def pretend(cache: Path) -> Path:
    """Make what a finished build leaves."""
    folder = install.folder_of(TORCH, cache)
    (folder / "bin").mkdir(parents=True)
    (folder / ".built").write_text("".join(f"{one}\n" for one in TORCH.requirements))
    return folder


def test_an_environment_is_found_by_its_name() -> None:
    """A name means one environment, a framework's name its newest."""
    assert "torch-2.10" == find_wheels("torch-2.10").name
    assert "torch-2.15" == find_wheels("torch").name
    assert "2.10.0" == TORCH.version


def test_an_unknown_name_is_refused_with_the_choices() -> None:
    """A name that means nothing is answered with those that do."""
    with pytest.raises(
        InvalidError, match=r'wheels: "torch-1\.0" is not known; use one of torch-2'
    ):
        find_wheels("torch-1.0")


def test_names_and_versions_agree() -> None:
    """Each environment is named after its framework and the beginning of its pin."""
    wrong = [
        one.name
        for one in WHEEL_SETS
        if not one.version.startswith(one.name.removeprefix(f"{one.framework}-"))
    ]

    assert [] == wrong
    assert len(WHEEL_SETS) == len({one.name for one in WHEEL_SETS})


def test_only_a_finished_build_counts(tmp_path: Path) -> None:
    """An environment without its mark, or with that of other pins, is not there."""
    before = install.is_built(TORCH, tmp_path)
    folder = pretend(tmp_path)
    after = install.is_built(TORCH, tmp_path)
    (folder / ".built").write_text("torch==2.10.1\n")

    assert (False, True, False) == (before, after, install.is_built(TORCH, tmp_path))


def test_what_is_not_built_is_named_with_its_size(tmp_path: Path) -> None:
    """Who asks for an environment that is not there learns how to build it, and how large it is."""
    with pytest.raises(WheelsError, match=r"make frameworks ONLY=torch-2\.10 \(6961 MiB\)"):
        install.python_of(TORCH, tmp_path)


def test_a_full_disk_is_refused_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no room nothing is begun, and all numbers are said."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, 5000 << 20))

    with pytest.raises(WheelsError, match=r"needs 6961 MiB and 4096 to spare, .* has 5000"):
        install.build([TORCH], Progress(), tmp_path)
    assert not install.folder_of(TORCH, tmp_path).exists()


def test_what_is_there_is_not_built_again(tmp_path: Path) -> None:
    """A second build does nothing."""
    folder = pretend(tmp_path)
    install.build([TORCH], Progress(), tmp_path)

    assert [".built", "bin"] == sorted(path.name for path in folder.iterdir())


def test_removal_takes_environments_alone(tmp_path: Path) -> None:
    """What is removed is the environments; whatever else is in the cache stays."""
    folder = pretend(tmp_path)
    (folder.parent / "mine").mkdir()
    install.remove(WHEEL_SETS, Progress(), tmp_path)

    assert not folder.exists()
    assert (folder.parent / "mine").exists()


def test_the_list_shows_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has each environment with its size, and whether it is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pretend(tmp_path / "gpufence")
    code = shell.main(["list", "torch-2.10", "torch-2.9"])
    lines = capsys.readouterr().out.splitlines()

    assert 0 == code
    assert ["torch-2.10", "6961", "MiB", "built"] == lines[0].split()[:4]
    assert ["torch-2.9", "6756", "MiB", "not", "built"] == lines[1].split()[:5]


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that means nothing ends the command with one line."""
    code = shell.main(["build", "caffe"])
    complaint = capsys.readouterr().err

    assert 1 == code
    assert 'python -m simulator wheels: wheels: "caffe" is not known' in complaint
    assert 1 == len(complaint.splitlines())


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {}),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, {}),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, {"CUDA_VISIBLE_DEVICES": "GPU-1"}),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, {"CUDA_VISIBLE_DEVICES": "none"}),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1", "CUDA_VISIBLE_DEVICES": "0"}, {}),
    ],
)
def test_a_container_sees_the_cards_it_was_assigned(
    own: dict[str, str], expected: dict[str, str]
) -> None:
    """
    What the device plugin assigned is what CUDA shows, unless the program chose among it itself.
    """
    assert expected == visible(own)
