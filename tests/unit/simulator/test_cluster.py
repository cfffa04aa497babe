"""The cluster on this machine: its command line, what the machine lacks, and its images."""

import os
from pathlib import Path

import pytest

from simulator.cluster import needs
from simulator.cluster.__main__ import main, parser
from simulator.cluster.images.archives import OTHERS, PLUGIN, PRODUCT, SHARED, ImageArchives
from simulator.cluster.images.builder import base_name
from simulator.cluster.needs import Missing
from simulator.cluster.setup import ClusterOptions, ImageError
from simulator.progress import Progress


def test_the_defaults_are_the_options() -> None:
    """Who names nothing gets what a program gets that names nothing."""
    arguments = parser().parse_args([])

    assert ClusterOptions() == ClusterOptions(
        arguments.node, arguments.cards, arguments.gpushare_unit
    )


def test_preparing_and_cleaning_exclude_each_other() -> None:
    """One does not do two things that start nothing."""
    with pytest.raises(SystemExit):
        main(["--prepare", "--clean"])


def test_help_names_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks learns what to install."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out

    assert "containernetworking-plugins" in shown
    assert "--install" in shown


NOTHING = Missing((), ())
GROUPS = [Path("/sys/fs/cgroup/memory")]


def test_a_machine_without_programs_lacks_all(tmp_path: Path) -> None:
    """Every program is looked for, and each names its package."""
    found = needs.missing(str(tmp_path))

    assert set(needs.PACKAGES) <= set(found.things)
    assert {"containerd", "runc", "buildah", "mmdebstrap", "build-essential"} <= set(found.packages)


def test_root_on_a_full_machine_has_no_problem() -> None:
    """Nothing is wrong where nothing is missing."""
    assert [] == needs.problems(0, NOTHING, GROUPS)


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


def test_a_base_is_made_once(tmp_path: Path) -> None:
    """A base that the store has is not made again."""
    builder = FakeBuilder(base_name())
    made(builder, tmp_path)

    assert "mmdebstrap" not in {command[0] for command in builder.commands}


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


def test_the_latest_archives_stay(tmp_path: Path) -> None:
    """Of each image the two archives that were used last are kept."""
    for number in range(5):
        (tmp_path / "sources" / "agent" / "file").parent.mkdir(parents=True, exist_ok=True)
        images(tmp_path, FakeBuilder())
        (checkout(tmp_path / "sources") / "agent" / "file").write_text(str(number))
        for path in made(FakeBuilder(), tmp_path):
            os.utime(path, (number, number))

    assert 2 == len(list((tmp_path / "images").glob("agent-*.tar")))
    assert 1 == len(list((tmp_path / "images").glob("pause-*.tar")))


def test_images_need_the_sources(tmp_path: Path) -> None:
    """Without a checkout it is said what is missing."""
    (tmp_path / "sources").mkdir()

    with pytest.raises(ImageError, match="built from a checkout"):
        made(FakeBuilder(), tmp_path)
