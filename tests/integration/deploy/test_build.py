"""
The script that builds the images finds an engine, hands it what it needs, and says what is wrong.
"""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tools import ROOT
from tools.manifests import DEPLOY, REGISTRY

SCRIPT = DEPLOY / "images" / "build"
ENGINE = """#!/bin/sh
if [ "$1" = version ] || [ "$1" = --version ]; then exit {works}; fi
echo "{name} $*" >> "$LOG"
"""
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


class Machine:
    """A machine with some engines on its PATH, which note how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"

    def engine(self, name: str, *, works: bool = True) -> None:
        path = self.folder / name
        path.write_text(ENGINE.format(name=name, works=0 if works else 1), encoding="utf-8")
        path.chmod(0o755)

    def build(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # The real engines of this machine are out of reach.
        tools = self.folder / "tools"
        if not tools.exists():
            tools.mkdir()
            for name in ("sh", "sed", "head", "dirname", "mkdir", "rm", "cat"):
                (tools / name).symlink_to(f"/usr/bin/{name}")
        return subprocess.run(
            ["/bin/sh", SCRIPT, *arguments],
            env={"PATH": f"{self.folder}:{tools}", "LOG": str(self.log), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_all_images_are_built_by_default(machine: Machine) -> None:
    """Each program becomes an image of the project's version."""
    machine.engine("docker")

    done = machine.build()

    assert 0 == done.returncode, done.stderr
    assert [
        f"docker build --build-arg PROGRAM={program} --target {program} "
        f"--tag {REGISTRY}/{program}:{VERSION} --file deploy/images/Dockerfile ."
        for program in ("webhook", "agent", "certs", "controller")
    ] == machine.calls


@pytest.mark.parametrize("name", ["podman", "buildah"])
def test_an_engine_that_does_not_answer_is_passed_over(machine: Machine, name: str) -> None:
    """A docker without its daemon is no reason to give up."""
    machine.engine("docker", works=False)
    machine.engine(name)

    done = machine.build("agent")

    assert 0 == done.returncode, done.stderr
    assert [name] == [call.split()[0] for call in machine.calls]


def test_no_engine_is_told_with_the_remedy(machine: Machine) -> None:
    """Without any engine the last line says what to install."""
    done = machine.build()

    assert 2 == done.returncode
    assert "apt install buildah" in done.stderr


def test_base_name_and_tag_can_be_chosen(machine: Machine) -> None:
    """What is said on the command line arrives at the engine."""
    machine.engine("podman")

    machine.build("--base", "b:1", "--name", "example.com/x", "--tag", "t", "certs")

    assert (
        "podman build --build-arg BASE=b:1 --build-arg PROGRAM=certs --target certs "
        "--tag example.com/x/certs:t --file deploy/images/Dockerfile ."
    ) == machine.calls[0]


def test_buildah_lets_everything_be_of_one_moment(machine: Machine) -> None:
    """
    For a release files and compiled modules are of the sources' moment, and images are folders.
    """
    machine.engine("buildah")

    machine.build("--moment", "7", "--oci", f"{machine.folder}/oci", "certs")
    built, pushed = machine.calls

    assert (
        "buildah build --format docker --timestamp 7 --build-arg SOURCE_DATE_EPOCH=7 "
        "--build-arg PROGRAM=certs --target certs "
        f"--tag {REGISTRY}/certs:{VERSION} --file deploy/images/Dockerfile ."
    ) == built
    assert (
        f"buildah push --quiet --format oci {REGISTRY}/certs:{VERSION} "
        f"oci:{machine.folder}/oci/certs:{VERSION}"
    ) == pushed


@pytest.mark.parametrize("option", ["--moment", "--oci"])
def test_other_engines_know_no_moment(machine: Machine, option: str) -> None:
    """What only buildah can is asked of no other."""
    machine.engine("docker")

    done = machine.build(option, "7")

    assert 2 == done.returncode
    assert "--moment and --oci take buildah, and this is docker" in done.stderr
    assert [] == machine.calls


def test_the_machines_package_index_is_handed_on(machine: Machine) -> None:
    """The index by its variable, files as secrets, which stay out of the image."""
    machine.engine("docker")

    machine.build("certs", PIP_INDEX_URL="x", PIP_CERT="/ca", PIP_CONFIG_FILE="/pip")

    assert (
        "--build-arg PIP_INDEX_URL --secret id=ca,src=/ca --secret id=pip,src=/pip"
        in (machine.calls[0])
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpufence", "docker.io/gpufence/certs:1"),
        (REGISTRY, f"{REGISTRY}/certs:1"),
        ("example.com/gpufence", "example.com/gpufence/certs:1"),
        ("localhost:5000/gpufence", "localhost:5000/gpufence/certs:1"),
        ("localhost/gpufence", "localhost/gpufence/certs:1"),
    ],
)
def test_archives_carry_the_name_that_nodes_look_for(
    machine: Machine, name: str, expected: str, tmp_path: Path
) -> None:
    """Of a name without a registry the container runtimes of nodes make one of docker.io."""
    machine.engine("buildah")

    machine.build("--save", str(tmp_path / "out"), "--name", name, "--tag", "1", "certs")

    assert machine.calls[-1].endswith(f"docker-archive:{tmp_path}/out/certs.tar:{expected}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plugin",), '"plugin" is neither an option nor one of webhook, agent, certs, controller'),
        (("--tag",), "--tag wants a value"),
        (("--engine", "nerdctl"), '"nerdctl" is not there or does not answer'),
    ],
)
def test_a_mistake_is_named(machine: Machine, arguments: tuple[str, ...], words: str) -> None:
    """A mistake in the call ends it with 2, before anything is built."""
    machine.engine("docker")

    done = machine.build(*arguments)

    assert 2 == done.returncode
    assert words in done.stderr
    assert [] == machine.calls


def test_help_is_there(machine: Machine) -> None:
    """Help names every option, and builds nothing."""
    told = machine.build("--help").stdout

    assert all(option in told for option in ("--engine", "--base", "--name", "--tag", "--save"))
