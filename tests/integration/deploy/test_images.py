"""The script that builds the images, and the images as they are built."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from simulator.cluster.images.archives import ImageArchives
from simulator.progress import Progress
from tests.integration.deploy.rendering import Unpacked, unpack
from tests.support.tree import PACKAGES, found, pod_spec
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, DEPLOY, REGISTRY

SCRIPT = DEPLOY / "images" / "build"
ENGINE = """#!/bin/sh
if [ "$1" = version ] || [ "$1" = --version ]; then exit {works}; fi
echo "{name} $*" >> "$LOG"
case "$BROKEN $*" in "build "*"PROGRAM=agent "*) echo 'exec format error' >&2; exit 125 ;; esac
while [ $# -gt 0 ]; do
  case $1 in --digestfile) printf sha256:%064d 7 > "$2" ;; esac
  shift
done
"""
REST = "--format docker --build-arg PROGRAM=agent --target agent --file deploy/images/Dockerfile ."
ASKING = ("uname", "tr", "paste")
FOREIGN = "linux/s390x"
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
            for name in ("sh", "sed", "head", "dirname", "mkdir", "rm", "cat", "mktemp", *ASKING):
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
        f"docker build --tag {REGISTRY}/{program}:{VERSION} --build-arg PROGRAM={program} "
        f"--target {program} --file deploy/images/Dockerfile ."
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
        "podman build --tag example.com/x/certs:t --build-arg BASE=b:1 --build-arg PROGRAM=certs "
        "--target certs --file deploy/images/Dockerfile ."
    ) == machine.calls[0]


def test_buildah_lets_everything_be_of_one_moment(machine: Machine) -> None:
    """For a release all files are of the sources' moment, and images are folders."""
    machine.engine("buildah")

    machine.build("--moment", "7", "--oci", f"{machine.folder}/oci", "certs")
    built, pushed = machine.calls

    assert (
        f"buildah build --tag {REGISTRY}/certs:{VERSION} --format docker --timestamp 7 "
        "--build-arg SOURCE_DATE_EPOCH=7 --build-arg PROGRAM=certs --target certs "
        "--file deploy/images/Dockerfile ."
    ) == built
    assert (
        f"buildah push --quiet --format oci {REGISTRY}/certs:{VERSION} "
        f"oci:{machine.folder}/oci/certs:{VERSION}"
    ) == pushed


def test_what_is_pushed_is_known_by_its_digest(machine: Machine, tmp_path: Path) -> None:
    """Each image goes to the registry, and a file of values says what it is there."""
    machine.engine("buildah")
    file = tmp_path / "digests.yaml"

    done = machine.build("--push", "--name", "example.com/x", "--digests", str(file), "certs")

    assert 0 == done.returncode, done.stderr
    assert "buildah push --quiet --digestfile" in machine.calls[-1]
    assert machine.calls[-1].endswith(f" example.com/x/certs:{VERSION}")
    assert {
        "image": {"registry": "example.com/x", "digests": {"certs": f"sha256:{7:064}"}}
    } == yaml.safe_load(file.read_text(encoding="utf-8"))


def test_two_platforms_make_one_list(machine: Machine) -> None:
    """A registry keeps one name for both, and a build before it is no part of the list."""
    machine.engine("buildah")

    done = machine.build(
        "--platform", "linux/amd64,linux/arm64", "--push", "--name", "e.com/x", "agent"
    )
    image = f"e.com/x/agent:{VERSION}"

    assert 0 == done.returncode, done.stderr
    assert [
        f"buildah manifest rm {image}",
        f"buildah build --platform linux/amd64,linux/arm64 --manifest {image} {REST}",
    ] == machine.calls[:2]
    assert machine.calls[2].endswith(f"{image} docker://{image}")


@pytest.mark.parametrize(
    ("platform", "why"),
    [
        ([], ""),
        (["--platform", FOREIGN], f"  {FOREIGN}: not of this machine, takes QEMU"),
        (
            ["--platform", f"linux/amd64,linux/arm64,{FOREIGN}", "--push", "--name", "e.com/x"],
            f",{FOREIGN}: not of this machine, takes QEMU",
        ),
    ],
)
def test_what_is_unbuilt_is_said(machine: Machine, platform: list[str], why: str) -> None:
    """An engine that fails leaves out an image and those after it, foreign ones with the remedy."""
    machine.engine("buildah")

    done = machine.build(*platform, "certs", "agent", "webhook", BROKEN="build")
    where = f", for {platform[1]}" if platform else ""

    assert 1 == done.returncode
    assert f"unbuilt: agent webhook, tag {VERSION}{where}; buildah says why" in done.stderr
    assert why in done.stderr
    assert bool(why) == ("QEMU" in done.stderr)
    assert not any("PROGRAM=webhook" in call for call in machine.calls)


def test_what_was_not_started_is_said(machine: Machine) -> None:
    """Of an image for another platform nothing more is known than that it was built."""
    machine.engine("podman")

    own = machine.build("certs")
    other = machine.build("--platform", FOREIGN, "certs")

    assert "started" not in own.stdout
    assert f"for {FOREIGN} built, and not started here" in other.stdout


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
        (("--push",), "say which registry by --name, such as registry.example.com/gpufence"),
        (("--digests", "x"), "--digests: a registry says what they are; see --push"),
        (("--platform", "a,b"), "--platform: several make a list that only a registry keeps"),
        (("--platform", "a,b", "--push", "--save", "x"), "--save and --oci take one platform"),
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


PROGRAMS = {
    "webhook": ("Deployment", "gpufence-webhook", BASE),
    "agent": ("DaemonSet", "gpufence-agent", BASE),
    "certs": ("CronJob", "gpufence-certs", BASE),
    "controller": ("Deployment", "gpufence-controller", COMPONENTS / "idle-release"),
}
WEB = {"fastapi", "starlette", "uvicorn", "httptools", "uvloop"}
SITE = "opt/gpufence/lib/python3*/site-packages"
INSTALLERS = {"pip", "pip3", "uv", "wheel", "gcc", "cc", "g++", "make", "ld", "as"}


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    made = ImageArchives.from_environment(os.environ).ensure(Progress(sys.stderr))
    return {path.name.partition("-")[0]: path for path in made}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def image(
    archives: dict[str, Path], program: str, tmp_path_factory: pytest.TempPathFactory
) -> Unpacked:
    return unpack(archives[program], tmp_path_factory.mktemp(program))


def distributions(image: Unpacked) -> set[str]:
    folders = image.root.glob(f"{SITE}/*.dist-info")
    return {path.name.partition("-")[0].lower().replace("_", "-") for path in folders}


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_it_starts_as_the_manifest_says_on_a_root_it_cannot_write(
    image: Unpacked, program: str
) -> None:
    """The program answers as the manifest's user, on a read-only root."""
    spec = pod_spec(found(*PROGRAMS[program]))
    security, (container,) = spec["securityContext"], spec["containers"]
    answer = image.run(container["command"][0], "--help")

    assert f"{security['runAsUser']}:{security['runAsGroup']}" == image.config["config"]["User"]
    assert 0 == answer.returncode, answer.stderr
    assert f"usage: {container['command'][0]}" in answer.stdout


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_its_root_really_cannot_be_written(image: Unpacked) -> None:
    """The start above proves something: writing does fail there."""
    answer = image.run("python3", "-c", "open('/opt/gpufence/x', 'w')")

    assert "Read-only file system" in answer.stderr


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_it_has_its_own_trade_and_no_other(image: Unpacked, program: str) -> None:
    """The agent has NVML, the webhook a web framework, the certificates neither."""
    there = distributions(image)

    assert (program == "agent") == ("nvidia-ml-py" in there)
    assert (WEB if program == "webhook" else set()) == there & WEB
    assert not there & {"kubernetes", "pip", "setuptools", "uv-build"}


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_it_holds_one_program(image: Unpacked, program: str) -> None:
    """Our own code is what the program imports, and one command; the plugin is with the jobs."""
    (site,) = image.root.glob(SITE)
    more = {"kubectl_gpufence"} if program == "certs" else {"service"}
    kept = {"gpufence", "kube", program} | more
    commands = {path.name for path in (image.root / "opt/gpufence/bin").iterdir()}

    assert kept == {path.name for path in site.iterdir()} & set(PACKAGES)
    expected = {f"gpufence-{program}"} | ({"kubectl-gpufence"} if program == "certs" else set())
    assert expected == {name for name in commands if not name.startswith("python")}


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_nothing_in_it_installs_or_compiles(image: Unpacked) -> None:
    """There is neither an installer of Python packages nor a compiler."""
    folders = ("bin", "usr/bin", "usr/local/bin", "opt/gpufence/bin")
    commands = {path.name for folder in folders for path in (image.root / folder).glob("*")}

    assert set() == commands & INSTALLERS
    assert [] == [
        *image.root.glob("usr/**/pip-*.whl"),
        *image.root.glob("usr/lib/python3*/ensurepip"),
    ]


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_nothing_in_it_changes_the_user(image: Unpacked) -> None:
    """No file is setuid or setgid."""
    special = [
        path for path in image.files() if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]

    assert [] == special


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_it_lists_what_it_holds(image: Unpacked) -> None:
    """The bill of materials names every Python package, and Debian's."""
    bill = json.loads((image.root / "opt/gpufence/sbom.cdx.json").read_text(encoding="utf-8"))
    urls = [component["purl"] for component in bill["components"]]
    python = {url.removeprefix("pkg:pypi/").partition("@")[0] for url in urls if ":pypi/" in url}

    assert distributions(image) == {name.replace("_", "-") for name in python}
    assert any(url.startswith("pkg:deb/debian/libc6@") for url in urls)
