"""Everything that is published: the same bytes each time, and a plugin for a bare Python."""

import ast
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import COSIGN
from tests.support.plugin import Desk
from tests.support.servers import ApiServer, reply
from tools import ROOT
from tools.release import archive
from tools.release.__main__ import project_version, release, source_moment
from tools.release.archive import DEPENDENCIES, INSIDE, ReleaseError, application

MOMENT = 1_780_000_000
# Neither variables, nor the folder, nor installed packages: what any machine's Python has.
BARE = (sys.executable, "-I", "-S")
ASKED = """
import sys
sys.path[:0] = sys.argv[2:]
from kubernetes.client import ApiClient, Configuration
answer = ApiClient(configuration=Configuration()).call_api(method="GET", url=sys.argv[1])
answer.read()
print(answer.status, answer.data)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("release")
    for name, content in release(MOMENT).items():
        (written / name).write_bytes(content)
    return written


@pytest.fixture(scope="module")
def plugin(folder: Path) -> Path:
    return next(folder.glob("*.pyz"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer() as server:
        yield Desk(server, tmp_path)


def _run(*command: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(item) for item in command],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_two_builds_have_equal_digests(folder: Path, tmp_path: Path) -> None:
    """Time zone, hash seed and folder leave no trace in any file."""
    again = _run(
        *(sys.executable, "-m", "tools.release", "--folder", tmp_path),
        SOURCE_DATE_EPOCH=str(MOMENT),
        TZ="Pacific/Auckland",
        PYTHONHASHSEED="7",
    )

    assert 0 == again.returncode, again.stderr
    assert _digests(folder) == _digests(tmp_path)


def test_every_file_is_in_the_checksums(folder: Path) -> None:
    """Wheel, plugin and chart are what there is."""
    version = project_version()
    summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}

    assert set(_digests(folder)) == summed | {"SHA256SUMS"}
    assert summed == {
        f"gpufence-{version}-py3-none-any.whl",
        f"gpufence-{version}.tgz",
        f"kubectl-gpufence-{version}.pyz",
    }


def test_a_changed_byte_fails_verification(folder: Path, tmp_path: Path) -> None:
    """`sha256sum --check` takes the files as they were built and in no other way."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    check = ("env", "-C", tmp_path, "sha256sum", "--check", "--strict", "SHA256SUMS")
    whole = _run(*check)
    changed = next(tmp_path.glob("*.pyz"))
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 1
    changed.write_bytes(content)
    broken = _run(*check)

    assert (0, 1) == (whole.returncode, broken.returncode)
    assert f"{changed.name}: FAILED" in broken.stdout


def test_the_plugin_runs_on_a_bare_python(plugin: Path, desk: Desk) -> None:
    """Without any installed package it answers what the installed plugin answers."""
    said = _run(*BARE, plugin, "top", "-o", "json", **desk.environ)

    assert (0, desk.run("top", "-o", "json").json) == (said.returncode, json.loads(said.stdout))


def test_the_plugin_knows_its_version(plugin: Path) -> None:
    """The version is that of the wheel that the file was made of."""
    assert f"gpufence {project_version()}\n" == _run(*BARE, plugin, "--version").stdout


def test_the_plugin_is_also_gpushares(plugin: Path, tmp_path: Path) -> None:
    """Called `kubectl-inspect-gpushare`, the file is that program."""
    link = tmp_path / "kubectl-inspect-gpushare"
    link.symlink_to(plugin)

    assert "usage: kubectl inspect gpushare" in _run(*BARE, link, "--help").stdout


def test_the_plugin_completes_what_is_typed(plugin: Path, tmp_path: Path) -> None:
    """Called `kubectl_complete-gpufence`, the file answers what a word may become."""
    link = tmp_path / "kubectl_complete-gpufence"
    link.symlink_to(plugin)

    assert ["cards", ":4"] == _run(*BARE, link, "top", "car").stdout.splitlines()


def test_the_plugin_brings_its_page(plugin: Path) -> None:
    """The dashboard's page is read out of the archive."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from kubectl_gpufence.verbs.dashboard.server import read_page; print(read_page().policy)"
    )

    assert "script-src 'sha256-" in _run(*BARE, "-c", script, plugin).stdout


def test_an_old_python_can_read_what_runs_first() -> None:
    """A Python that is too old says so, instead of stumbling over words that it does not know."""
    text = (INSIDE / "start.py").read_text(encoding="utf-8")

    assert isinstance(ast.parse(text, feature_version=(3, 6)), ast.Module)


def test_the_plugin_has_no_compiled_part(plugin: Path) -> None:
    """What the archive holds is Python, one page and its style, certificates and licences."""
    with zipfile.ZipFile(plugin) as content:
        names = content.namelist()
    licensed = {name.split("/")[1] for name in names if name.startswith("licenses/")}
    kinds = {Path(name).suffix for name in names if not name.startswith("licenses/")}

    assert {".py", ".html", ".css", ".pem", ""} == kinds  # METADATA has no ending
    assert {"gpufence", *DEPENDENCIES} == licensed


def test_the_stand_in_asks_as_the_client_does(plugin: Path) -> None:
    """The one request that a login by OIDC makes is answered alike in the archive and outside."""
    with ApiServer() as server:
        server.on("GET /well-known", reply({"token_endpoint": "here"}))
        ours = _run(*BARE, "-c", ASKED, f"{server.url}/well-known", plugin)
        theirs = _run(sys.executable, "-c", ASKED, f"{server.url}/well-known")

    assert (0, theirs.stdout) == (ours.returncode, ours.stdout), ours.stderr
    assert ours.stdout.startswith("200 ")


def test_what_differs_from_the_lock_is_refused(folder: Path) -> None:
    """A release is never made of other versions than those that are tested."""
    wheel = next(folder.glob("*.whl"))

    with pytest.raises(ReleaseError, match=r"certifi .* installed.*says 1\.0; remedy: make setup"):
        application(wheel, "certifi==1.0 \\\n", MOMENT)


def test_what_was_changed_after_it_was_installed_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dependency that somebody patched in the environment gets into no release."""
    (tmp_path / "certifi").mkdir()
    (tmp_path / "certifi/__init__.py").write_text("evil = True\n", encoding="utf-8")
    described = tmp_path / "certifi-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Name: certifi\nVersion: 1.0\n", encoding="utf-8")
    (described / "RECORD").write_text("certifi/__init__.py,sha256=AAAA,4\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ReleaseError, match=r"certifi/__init__\.py is not what certifi was"):
        application(next(folder.glob("*.whl")), "certifi==1.0 \\\n", MOMENT)


@pytest.mark.parametrize(("environ", "moment"), [({"SOURCE_DATE_EPOCH": "7"}, 7), ({}, None)])
def test_the_moment_is_that_of_the_commit(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], moment: int | None
) -> None:
    """SOURCE_DATE_EPOCH says when the sources are from, and otherwise git does."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", environ.get("SOURCE_DATE_EPOCH", ""))
    committed = _run("git", "-C", ROOT, "log", "-1", "--format=%ct").stdout.strip()

    assert (moment or int(committed)) == source_moment()


def test_a_moment_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A date in words would change every digest, and is not guessed at."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")

    with pytest.raises(ReleaseError, match="'today' is no number of seconds"):
        source_moment()


def test_the_chart_is_all_of_its_folder(folder: Path) -> None:
    """What Helm installs is what the tests of the chart render, with a licence, without owner."""
    chart = ROOT / "deploy" / "chart"
    beside = {".helmignore", "dashboards/kustomization.yaml"}
    files = {str(path.relative_to(chart)) for path in chart.rglob("*") if path.is_file()} - beside
    with tarfile.open(next(folder.glob("*.tgz"))) as content:
        entries = content.getmembers()

    assert {f"gpufence/{name}" for name in (*files, "LICENSE")} == {each.name for each in entries}
    assert {(0, "", MOMENT)} == {(each.uid, each.uname, each.mtime) for each in entries}


def test_files_are_stored_from_1980_on() -> None:
    """A moment that zip files cannot tell becomes their first."""
    assert archive.zipped({"a": b""}, 0) == archive.zipped({"a": b""}, 315532800)


SIGN = ("--yes", "--key=cosign.key", "--tlog-upload=false", "--use-signing-config=false")
VERIFY = ("--key=cosign.pub", "--insecure-ignore-tlog=true")
SBOM = b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}'


class Cosign:
    """Sigstore's own program, in a folder with a pair of keys that it made."""

    def __init__(self, folder: Path) -> None:
        self._program = COSIGN.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
        self.folder = folder
        made = self("generate-key-pair")
        assert made.returncode == 0, made.stdout

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            cwd=self.folder,
            env={"HOME": str(self.folder), "COSIGN_PASSWORD": "open sesame"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def cosign(tmp_path_factory: pytest.TempPathFactory) -> Cosign:
    return Cosign(tmp_path_factory.mktemp("cosign"))


def released(clone: Path, commit: str) -> dict[str, bytes]:
    """Clone a commit, make a release of it, and return its files."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    unset = {"SOURCE_DATE_EPOCH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    variables = {name: text for name, text in os.environ.items() if name not in unset}
    subprocess.run(["make", "release"], cwd=clone, env=variables, check=True)
    return {path.name: path.read_bytes() for path in (clone / "dist").iterdir()}


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_two_clean_clones_release_the_same_bytes(tmp_path: Path) -> None:
    """Every file is equal, from wherever it was built."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]  # before a commit while this runs
    commit = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    one = released(tmp_path / "one", commit)
    two = released(tmp_path / "some" / "longer" / "way" / "two", commit)

    assert 4 == len(one)
    assert {name: hashlib.sha256(content).hexdigest() for name, content in one.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in two.items()
    }


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_cosign_tells_a_changed_byte(cosign: Cosign) -> None:
    """What docs/releasing.md signs verifies, and with one byte changed it does not."""
    sums = cosign.folder / "SHA256SUMS"
    sums.write_bytes(b"0" * 64 + b"  kubectl-gpufence.pyz\n")
    bundle = "--bundle=SHA256SUMS.sigstore.json"
    signed = cosign("sign-blob", *SIGN, bundle, sums.name)
    good = cosign("verify-blob", *VERIFY, bundle, sums.name)
    sums.write_bytes(b"1" + sums.read_bytes()[1:])
    bad = cosign("verify-blob", *VERIFY, bundle, sums.name)

    assert (0, 0) == (signed.returncode, good.returncode), signed.stdout + good.stdout
    assert "Verified OK" in good.stdout
    assert 0 != bad.returncode
    assert "Verified OK" not in bad.stdout


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_cosign_tells_whose_bill_of_materials_it_is(cosign: Cosign) -> None:
    """What docs/releasing.md attests is about the file that was signed, and about no other."""
    (cosign.folder / "sbom.json").write_bytes(SBOM)
    file = cosign.folder / "plugin.pyz"
    file.write_bytes(b"#!/usr/bin/env python3\n")
    about = ("--type=cyclonedx", "--bundle=plugin.sbom.sigstore.json", file.name)
    signed = cosign("attest-blob", *SIGN, "--predicate=sbom.json", *about)
    good = cosign("verify-blob-attestation", *VERIFY, *about)
    file.write_bytes(b"#!/usr/bin/env python4\n")
    bad = cosign("verify-blob-attestation", *VERIFY, *about)

    assert (0, 0) == (signed.returncode, good.returncode), signed.stdout + good.stdout
    assert 0 != bad.returncode
