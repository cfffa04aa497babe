"""Two clean clones release the same bytes; the real cosign takes them, and refuses all others."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.controlplane.build import cache_folder
from tests.http.release.krew_rules import install, objections
from tests.http.release.whole import (
    SOURCE,
    WEBSITE,
    Cosign,
    Verdict,
    cosign_in,
    digests,
    head,
    image_builder,
    released,
)
from tests.support.api_server import ApiServer
from tests.support.desk import Desk
from tools.release.files import project_version
from tools.release.standalone import this_platform

pytestmark = [pytest.mark.release, pytest.mark.timeout(3600)]

SYSTEM = re.compile(r"(ld-linux.*|lib(c|dl|m|pthread|rt|util|z))\.so")
STEM = f"gpufence-{project_version()}.provenance"
SUMS = ("--bundle=SHA256SUMS.sigstore.json", "SHA256SUMS")
SUMS_OF_OLD = ("--signature=SHA256SUMS.sig", "SHA256SUMS")
PROVENANCE = (f"--bundle={STEM}.sigstore.json", "--type=slsaprovenance1")
PROVENANCE_OF_OLD = (f"--signature={STEM}.intoto.json", "--type=slsaprovenance1")


@pytest.fixture(scope="module")
def cosign(tmp_path_factory: pytest.TempPathFactory) -> Cosign:
    return cosign_in(tmp_path_factory.mktemp("cosign"))


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory, cosign: Cosign) -> tuple[Path, Path]:
    """The files of two releases, from clones whose paths have nothing in common."""
    images = image_builder(cache_folder(os.environ) / "release-images")
    folder = tmp_path_factory.mktemp("releases")
    commit = head()  # before somebody commits while this runs
    one = released(folder / "one", commit, cosign, images)
    return one, released(folder / "some" / "longer" / "way" / "two", commit, cosign, images)


@pytest.fixture(scope="module")
def dist(releases: tuple[Path, Path]) -> Path:
    return releases[0]


@pytest.fixture
def changed(dist: Path, tmp_path: Path) -> Path:
    """A copy in which one byte in the middle of each file that is no signature is another."""
    copy = tmp_path / "changed"
    shutil.copytree(dist, copy)
    for path in copy.iterdir():
        if ".sig" in path.name or ".intoto" in path.name:
            continue
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    return copy


@pytest.fixture(scope="module")
def platform(dist: Path) -> Any:
    manifest = yaml.safe_load((dist / "gpufence.yaml").read_text(encoding="utf-8"))

    assert [] == objections("gpufence.yaml", manifest)
    return manifest["spec"]["platforms"][0]


@pytest.fixture
def program(dist: Path, platform: Any, tmp_path: Path) -> Path:
    """The plugin with its own Python, as krew installs it here."""
    archive = dist / platform["uri"].removeprefix(f"{WEBSITE}/")
    return install(archive, platform, "gpufence", tmp_path / "krew").resolve()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer() as server:
        yield Desk(server, tmp_path)


def _system_libraries(program: Path) -> set[Path]:
    """Return the files of C library and zlib that a program and this Python load."""
    command = ["ldd", str(program), sys.executable]
    linked = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = {Path(word) for word in linked.split() if word.startswith("/")}
    return {path for path in paths if SYSTEM.match(path.name)}


def _subjects(dist: Path) -> list[str]:
    said = json.loads((dist / f"{STEM}.json").read_text(encoding="utf-8"))
    return [each["name"] for each in said["subject"]]


def test_two_clean_clones_release_the_same_bytes(releases: tuple[Path, Path]) -> None:
    """Every file is equal, with its signatures, from wherever it was built."""
    one, two = releases

    assert digests(one) == digests(two)


def test_everything_is_among_them(dist: Path) -> None:
    """Wheel, chart, both kinds of plugin and, where this machine builds them, four images."""
    version = project_version()
    expected = {
        f"gpufence-{version}-py3-none-any.whl",
        f"gpufence-{version}.tgz",
        "gpufence.yaml",
        f"kubectl-gpufence-{version}.pyz",
        f"kubectl-gpufence-{version}.zip",
        f"kubectl-gpufence-{version}-{'-'.join(this_platform())}.zip",
    }
    images = {
        f"gpufence-{program}-{version}.oci.tar"
        for program in ("webhook", "agent", "certs", "controller")
    }
    if any(dist.glob("*.oci.tar")):
        expected |= {*images, f"gpufence-{version}.images.txt"}

    assert expected == set(_subjects(dist))


def test_cosigns_key_signed(dist: Path, cosign: Cosign) -> None:
    """The public key beside the files is that of the pair that cosign made."""
    assert cosign.public.read_bytes() == (dist / "gpufence.pub").read_bytes()


@pytest.mark.parametrize("form", [SUMS, SUMS_OF_OLD], ids=["bundle", "signature"])
def test_cosign_takes_the_checksums(dist: Path, cosign: Cosign, form: tuple[str, ...]) -> None:
    """The bundle that cosign asks for since 3.0 verifies, and the signature that it took before."""
    verdict = cosign.verify("verify-blob", dist, *form)

    assert "Verified OK" in verdict.words
    assert verdict.taken


@pytest.mark.parametrize("form", [SUMS, SUMS_OF_OLD], ids=["bundle", "signature"])
def test_cosign_refuses_other_checksums(
    changed: Path, cosign: Cosign, form: tuple[str, ...]
) -> None:
    """One changed byte, and neither form verifies."""
    verdict = cosign.verify("verify-blob", changed, *form)

    assert not verdict.taken
    assert "Verified OK" not in verdict.words


@pytest.mark.parametrize("form", [PROVENANCE, PROVENANCE_OF_OLD], ids=["bundle", "envelope"])
def test_cosign_takes_the_provenance_of_each_file(
    dist: Path, cosign: Cosign, form: tuple[str, ...]
) -> None:
    """Each file is one that the signed statement is about."""
    verdicts = {
        name: cosign.verify("verify-blob-attestation", dist, *form, name)
        for name in _subjects(dist)
    }

    assert {} == {name: verdict for name, verdict in verdicts.items() if not verdict.taken}


@pytest.mark.parametrize("form", [PROVENANCE, PROVENANCE_OF_OLD], ids=["bundle", "envelope"])
def test_cosign_refuses_the_provenance_of_another_file(
    dist: Path, changed: Path, cosign: Cosign, form: tuple[str, ...]
) -> None:
    """A file with one changed byte is none that the statement is about."""
    verdicts = {
        name: cosign.verify("verify-blob-attestation", changed, *form, name)
        for name in _subjects(dist)
    }

    assert {} == {name: verdict for name, verdict in verdicts.items() if verdict.taken}


def test_cosign_refuses_another_key(dist: Path, cosign: Cosign, tmp_path: Path) -> None:
    """What one key signed does not verify by another."""
    stranger = Cosign(cosign.program, tmp_path)
    made: Verdict = stranger("generate-key-pair")

    assert made.taken, made.words
    assert not stranger.verify("verify-blob", dist, *SUMS).taken


def test_checksums_name_every_changed_file(changed: Path, dist: Path) -> None:
    """`sha256sum --check` takes each file as it was built, and in no other way."""
    shutil.copy(dist / "SHA256SUMS", changed)
    good, bad = (
        subprocess.run(
            ["sha256sum", "--check", "--strict", "SHA256SUMS"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        for folder in (dist, changed)
    )
    listed = len((dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines())

    assert (0, listed) == (good.returncode, good.stdout.count(": OK"))
    assert (1, listed) == (bad.returncode, bad.stdout.count(": FAILED"))


def test_the_provenance_names_the_sources(dist: Path) -> None:
    """Repository and commit are those of the clone."""
    said = json.loads((dist / f"{STEM}.json").read_text(encoding="utf-8"))
    sources = said["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    commit = subprocess.run(
        ["git", "-C", str(dist.parent), "rev-parse", "HEAD"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()

    assert {"name": "sources", "uri": SOURCE, "digest": {"gitCommit": commit}} == sources


def test_the_plugin_with_its_python_answers_alike(program: Path, desk: Desk) -> None:
    """Where no Python is in reach it answers what the installed plugin answers."""
    said = subprocess.run(
        [program, "top", "-o", "json"],
        env={**desk.environ, "PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, desk.run("top", "-o", "json").json) == (said.returncode, json.loads(said.stdout))


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: it changes its root folder")
def test_the_plugin_needs_c_library_and_zlib_alone(program: Path, tmp_path: Path) -> None:
    """Where the files of C library and zlib are all there is, it tells its version."""
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    for library in _system_libraries(program):
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    shutil.copy(program, root / "plugin")
    said = subprocess.run(
        [shutil.which("chroot") or "/usr/sbin/chroot", root, "/plugin", "--version"],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"gpufence {project_version()}\n" == said.stdout, said.stderr


def test_a_login_program_meets_the_machines_libraries(
    program: Path, desk: Desk, tmp_path: Path
) -> None:
    """What a kubeconfig has started to log in loads no library that came with the plugin."""
    script, seen = tmp_path / "login", tmp_path / "seen"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t"},
    }
    script.write_text(
        f"#!{sys.executable}\nimport os\n"
        f"open({str(seen)!r}, 'w').write(os.environ.get('LD_LIBRARY_PATH', 'none'))\n"
        f"print({json.dumps(credential)!r})\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    config_file = Path(desk.environ["KUBECONFIG"])
    config = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    config["users"] = [
        {
            "name": config["contexts"][0]["context"].get("user", "me"),
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": str(script),
                    "interactiveMode": "Never",
                }
            },
        }
    ]
    config["contexts"][0]["context"]["user"] = config["users"][0]["name"]
    config_file.write_text(yaml.safe_dump(config), encoding="utf-8")
    said = subprocess.run(
        [program, "top"], env=desk.environ, capture_output=True, text=True, check=False
    )

    assert (0, "none") == (said.returncode, seen.read_text(encoding="utf-8")), said.stderr


def test_the_plugin_brings_every_licence(dist: Path, platform: Any) -> None:
    """Licences of Python and of each library that came along are beside the program."""
    with zipfile.ZipFile(dist / platform["uri"].removeprefix(f"{WEBSITE}/")) as content:
        licensed = {name.split("/")[1] for name in content.namelist() if "/" in name}

    assert {"gpufence", "python", "urllib3", "libssl3"} <= licensed
    assert not {name for name in licensed if "readline" in name}
