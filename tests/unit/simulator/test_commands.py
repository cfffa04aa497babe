"""What is typed to the simulator, what it says meanwhile, and environments of frameworks."""

import io
import itertools
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from gpufence.errors import InvalidError
from simulator.__main__ import COMMANDS, main
from simulator.cluster import needs
from simulator.cluster.images.archives import OTHERS, PLUGIN, PRODUCT, SHARED, ImageArchives
from simulator.cluster.needs import Missing
from simulator.controlplane import Assets, BuildError
from simulator.controlplane import recipe as recipes
from simulator.keda.build import ensure
from simulator.progress import Progress
from simulator.wheels import install
from simulator.wheels.catalog import WHEEL_SETS, find_wheels
from simulator.wheels.install import WheelsError
from simulator.wheels.launch import visible


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The overview names all commands on standard output."""
    status = main(["--help"])
    shown = capsys.readouterr().out

    assert 0 == status
    assert all(f"  {command.name} " in shown for command in COMMANDS)


NOTHING = Missing((), ())
GROUPS = [Path("/sys/fs/cgroup/memory")]


def test_a_machine_without_programs_lacks_all(tmp_path: Path) -> None:
    """Every program is looked for, and each names its package."""
    found = needs.missing(str(tmp_path))

    assert set(needs.PACKAGES) <= set(found.things)
    assert {"containerd", "runc", "buildah", "mmdebstrap", "build-essential"} <= set(found.packages)


def test_all_problems_are_told_at_once() -> None:
    """Nobody mends one thing to be told of the next."""
    assert 3 == len(needs.problems(1000, Missing(("runc",), ("runc",)), []))


class FakeBuilder:
    """Writes down what it is told to run, and makes the archives that this would make."""

    def __init__(self, *images: str) -> None:
        self.images = set(images)
        self.commands: list[tuple[str, ...]] = []

    def prepare(self) -> None:
        self.commands.append(("prepare",))

    def has(self, image: str) -> bool:
        return image in self.images

    def run(self, *command: str, cwd: Path | None = None) -> None:
        del cwd
        self.commands.append(command)
        if "--save" in command:
            folder, program = command[-2:]
            Path(folder, f"{program}.tar").write_text(program)
        if command[:2] == ("buildah", "push"):
            Path(command[-1].split(":")[1]).write_text(command[-2])

    def programs(self) -> list[str]:
        """Name the product's images that were built."""
        return [command[-1] for command in self.commands if "--save" in command]


def checkout(folder: Path) -> Path:
    """Lay out what images are built from."""
    for name in (*SHARED, *PRODUCT, PLUGIN, "simulator/cluster/images/pause", "deploy/images"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "file").write_text(name)
    for name in OTHERS:
        if not (folder / name).exists():
            (folder / name).write_text(name)
    return folder


def images(tmp_path: Path, builder: FakeBuilder) -> ImageArchives:
    sources = tmp_path / "sources"
    return ImageArchives(
        tmp_path / "images", builder, sources if sources.exists() else checkout(sources)
    )


def made(builder: FakeBuilder, tmp_path: Path) -> list[Path]:
    return images(tmp_path, builder).ensure(Progress())


def test_unchanged_sources_build_nothing(tmp_path: Path) -> None:
    """The second time nothing is run at all."""
    first = made(FakeBuilder(), tmp_path)
    builder = FakeBuilder()

    assert first == made(builder, tmp_path)
    assert [] == builder.commands


@pytest.mark.parametrize(
    ("file", "programs"),
    [
        ("agent/file", ["agent"]),
        ("gpufence/file", ["webhook", "agent", "certs", "controller"]),
        ("pyproject.toml", ["webhook", "agent", "certs", "controller"]),
        ("simulator/cluster/images/pause/file", []),
    ],
)
def test_a_change_builds_what_it_is_in(tmp_path: Path, file: str, programs: list[str]) -> None:
    """Only the images that hold a changed file are built anew."""
    made(FakeBuilder(), tmp_path)
    (tmp_path / "sources" / file).write_text("changed")
    builder = FakeBuilder()
    made(builder, tmp_path)

    assert programs == builder.programs()


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


NEVER = 3600.0


def test_log_has_a_line_for_beginning_and_end() -> None:
    """In a log a step has a line when it begins and one with its duration."""
    stream = io.StringIO()
    clock = itertools.count(start=100.0, step=2.5).__next__
    with Progress(stream, every_seconds=NEVER, clock=clock).step("building etcd (1/3)"):
        pass

    assert "building etcd (1/3) ...\nbuilding etcd (1/3) ... 2.5 s, done\n" == stream.getvalue()


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
    """What the device plugin assigned is what CUDA shows, unless the program chose itself."""
    assert expected == visible(own)


def test_removal_takes_environments_alone(tmp_path: Path) -> None:
    """What is removed is the environments; whatever else is in the cache stays."""
    folder = pretend(tmp_path)
    (folder.parent / "mine").mkdir()
    install.remove(WHEEL_SETS, Progress(), tmp_path)

    assert not folder.exists()
    assert (folder.parent / "mine").exists()
