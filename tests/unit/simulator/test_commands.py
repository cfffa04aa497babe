"""What is typed to the simulator, and what it says meanwhile."""

import io
import itertools
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.__main__ import COMMANDS, main
from simulator.cluster import needs
from simulator.cluster.__main__ import main as cluster
from simulator.cluster.__main__ import parser
from simulator.cluster.images.archives import OTHERS, PLUGIN, PRODUCT, SHARED, ImageArchives
from simulator.cluster.images.builder import base_name
from simulator.cluster.needs import Missing
from simulator.cluster.setup import ClusterOptions, ImageError
from simulator.controlplane import Assets, BuildError
from simulator.controlplane import recipe as recipes
from simulator.keda.build import PIN, ensure, folder_of, read_pin
from simulator.progress import Progress


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The overview names all commands on standard output."""
    status = main(["--help"])
    shown = capsys.readouterr().out

    assert 0 == status
    assert all(f"  {command.name} " in shown for command in COMMANDS)


def test_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt command is quoted back beside the known ones."""
    assert 2 == main(["contrlplane"])
    assert "no command 'contrlplane'" in capsys.readouterr().err


def test_arguments_are_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows the command is the command's own."""
    with pytest.raises(SystemExit, match="0"):
        main(["controlplane", "--help"])
    assert "--controller-manager" in capsys.readouterr().out


def test_the_defaults_are_the_options() -> None:
    """Who names nothing gets what a program gets that names nothing."""
    arguments = parser().parse_args([])

    assert ClusterOptions() == ClusterOptions(
        arguments.node, arguments.cards, arguments.gpushare_unit
    )


def test_preparing_and_cleaning_exclude_each_other() -> None:
    """One does not do two things that start nothing."""
    with pytest.raises(SystemExit):
        cluster(["--prepare", "--clean"])


def test_help_names_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks learns what to install."""
    with pytest.raises(SystemExit):
        cluster(["--help"])
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


NEVER = 3600.0


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


def test_log_has_a_line_for_beginning_and_end() -> None:
    """In a log a step has a line when it begins and one with its duration."""
    stream = io.StringIO()
    clock = itertools.count(start=100.0, step=2.5).__next__
    with Progress(stream, every_seconds=NEVER, clock=clock).step("building etcd (1/3)"):
        pass

    assert "building etcd (1/3) ...\nbuilding etcd (1/3) ... 2.5 s, done\n" == stream.getvalue()


def test_failed_step_is_called_so() -> None:
    """A step that raises is told as failed, and the error goes on."""
    stream = io.StringIO()
    with (
        pytest.raises(ZeroDivisionError),
        Progress(stream, every_seconds=NEVER).step("dividing"),
    ):
        _ = 1 / 0

    assert stream.getvalue().endswith("s, failed\n")


def test_terminal_ticks_in_place() -> None:
    """On a terminal the line is overwritten and ended once."""
    stream = Terminal()
    clock = itertools.count(start=0.0, step=291.0).__next__
    with Progress(stream, every_seconds=NEVER, clock=clock).step("building"):
        pass

    assert "\r\x1b[Kbuilding ... 0 s\r\x1b[Kbuilding ... 291.0 s, done\n" == stream.getvalue()


def test_long_step_shows_that_it_lives() -> None:
    """While a step goes on, its seconds are told again and again."""
    stream = io.StringIO()
    deadline = time.monotonic() + 10
    with Progress(stream, every_seconds=0.001).step("waiting"):
        while stream.getvalue().count("\n") < 3 and time.monotonic() < deadline:
            time.sleep(0.001)

    assert stream.getvalue().count("waiting ...") >= 3


def test_without_a_stream_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress that nobody watches writes nowhere."""
    progress = Progress()
    progress.say("anything")
    with progress.step("something"):
        pass

    assert ("", "") == tuple(capsys.readouterr())
