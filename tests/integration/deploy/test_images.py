"""The images as they are built: who they start as, what is in them, and what is not."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from simulator.cluster.images.archives import ImageArchives
from simulator.progress import Progress
from tests.integration.deploy.rendering import Unpacked, unpack
from tests.support.tree import PACKAGES, found, pod_spec
from tools.manifests import BASE, COMPONENTS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]  # the first one builds the images

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


def test_its_root_really_cannot_be_written(image: Unpacked) -> None:
    """The start above proves something: writing does fail there."""
    answer = image.run("python3", "-c", "open('/opt/gpufence/x', 'w')")

    assert "Read-only file system" in answer.stderr


def test_it_has_its_own_trade_and_no_other(image: Unpacked, program: str) -> None:
    """
    The agent has NVML and no web framework, the webhook the reverse, the certificates neither.
    """
    there = distributions(image)

    assert (program == "agent") == ("nvidia-ml-py" in there)
    assert (WEB if program == "webhook" else set()) == there & WEB
    assert not there & {"kubernetes", "pip", "setuptools", "uv-build"}


def test_it_holds_one_program(image: Unpacked, program: str) -> None:
    """
    Of our own code there is what the program imports, and its one command; and the plugin in the
    image of jobs.
    """
    (site,) = image.root.glob(SITE)
    more = {"kubectl_gpufence"} if program == "certs" else {"service"}
    kept = {"gpufence", "kube", program} | more
    commands = {path.name for path in (image.root / "opt/gpufence/bin").iterdir()}

    assert kept == {path.name for path in site.iterdir()} & set(PACKAGES)
    expected = {f"gpufence-{program}"} | ({"kubectl-gpufence"} if program == "certs" else set())
    assert expected == {name for name in commands if not name.startswith("python")}


def test_nothing_in_it_installs_or_compiles(image: Unpacked) -> None:
    """There is neither an installer of Python packages nor a compiler."""
    folders = ("bin", "usr/bin", "usr/local/bin", "opt/gpufence/bin")
    commands = {path.name for folder in folders for path in (image.root / folder).glob("*")}

    assert set() == commands & INSTALLERS
    assert [] == [
        *image.root.glob("usr/**/pip-*.whl"),
        *image.root.glob("usr/lib/python3*/ensurepip"),
    ]


def test_nothing_in_it_changes_the_user(image: Unpacked) -> None:
    """No file is setuid or setgid."""
    special = [
        path for path in image.files() if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]

    assert [] == special


def test_it_lists_what_it_holds(image: Unpacked) -> None:
    """The bill of materials names every Python package, and Debian's."""
    bill = json.loads((image.root / "opt/gpufence/sbom.cdx.json").read_text(encoding="utf-8"))
    urls = [component["purl"] for component in bill["components"]]
    python = {url.removeprefix("pkg:pypi/").partition("@")[0] for url in urls if ":pypi/" in url}

    assert distributions(image) == {name.replace("_", "-") for name in python}
    assert any(url.startswith("pkg:deb/debian/libc6@") for url in urls)
