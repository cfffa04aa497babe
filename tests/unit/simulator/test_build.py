"""What is built or fetched once, pinned, and kept in the cache."""

from pathlib import Path

import pytest

from simulator import debian
from simulator.controlplane import Assets
from simulator.controlplane import recipe as recipes
from simulator.controlplane.build import cache_folder, main
from simulator.controlplane.errors import BuildError
from simulator.controlplane.older import read_releases
from simulator.controlplane.pins import main as pin
from simulator.debian import CHROMIUM, PROMETHEUS, Archive
from simulator.progress import Progress
from simulator.published import CDI_HOOK, COSIGN, HELM, Published


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/a"}, "/cache/gpufence"),
        ({"HOME": "/home/a"}, "/home/a/.cache/gpufence"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/a"}, "/home/a/.cache/gpufence"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.cache/gpufence"),
    ],
)
def test_cache_folder_follows_the_convention(environment: dict[str, str], folder: str) -> None:
    """An absolute XDG_CACHE_HOME names the cache; otherwise it is in the home folder."""
    assert Path(folder) == cache_folder(environment)


def test_given_folder_must_exist() -> None:
    """A KUBEBUILDER_ASSETS that leads nowhere is an error, not a reason to build."""
    with pytest.raises(BuildError, match="KUBEBUILDER_ASSETS is '/nowhere', which is not a folder"):
        Assets.from_environment({"KUBEBUILDER_ASSETS": "/nowhere", "HOME": "/"})


def test_command_knows_its_components(capsys: pytest.CaptureFixture[str]) -> None:
    """`build` refuses a misspelt component before it does anything."""
    with pytest.raises(SystemExit, match="2"):
        main(["etdc"])
    assert "no component 'etdc'; there are etcd" in capsys.readouterr().err


def copied(folder: Path) -> Path:
    """Copy the module files, so that a test may change them."""
    for name in ("go.mod", "go.sum"):
        (folder / name).write_bytes((recipes.SOURCES / name).read_bytes())
    return folder


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_changed_sources_get_a_folder_of_their_own(tmp_path: Path, name: str) -> None:
    """A change in either module file changes the cache folder."""
    with (copied(tmp_path) / name).open("a") as file:
        file.write("\n")
    before, after = recipes.read_recipe(), recipes.read_recipe(tmp_path)

    assert before.cache_folder(tmp_path) != after.cache_folder(tmp_path)


PROGRAMS = pytest.mark.parametrize("program", [HELM, COSIGN], ids=lambda one: one.name)


@pytest.mark.parametrize(
    ("program", "module"),
    [
        (HELM, "helm.sh/helm/v4"),
        (COSIGN, "github.com/sigstore/cosign/v3"),
        (CDI_HOOK, "github.com/NVIDIA/nvidia-container-toolkit"),
    ],
)
def test_the_pin_is_a_line_of_a_go_sum(program: Published, module: str) -> None:
    """Module, version and checksum are read from one place."""
    pin = program.read_pin()

    assert module == pin.module
    assert pin.sum.startswith("h1:")


@PROGRAMS
def test_what_is_there_is_not_built(program: Published, tmp_path: Path) -> None:
    """A program in the cache is found without Go."""
    assets = Assets(recipes.read_recipe(), tmp_path, None, {"PATH": ""}, ())
    missing = program.find(assets)
    folder = program.folder_of(program.read_pin(), tmp_path)
    folder.mkdir(parents=True)
    (folder / program.name).touch()

    assert (None, folder / program.name) == (missing, program.find(assets))
    assert folder / program.name == program.ensure(assets, Progress())


URIS = """\
'http://mirror.example/libc6_2.36-9%2bdeb12_amd64.deb' libc6_2.36-9+deb12_amd64.deb 2757 MD5Sum:a
'http://mirror.example/libopus0_1.3.1-3_amd64.deb' libopus0_1.3.1-3_amd64.deb 195192 MD5Sum:b2
'http://mirror.example/chromium_156.0_amd64.deb' chromium_156.0_amd64.deb 81157036\x20
"""
OPUS = Archive("libopus0_1.3.1-3_amd64.deb", 195192)
BROWSER = Archive("chromium_156.0_amd64.deb", 81157036)


def test_apts_plan_is_read() -> None:
    """Each line is a file and its size, with or without a checksum."""
    plan = debian.planned(f"Reading package lists...\n{URIS}")

    assert (OPUS, BROWSER) == plan[1:]
    assert "libc6" == plan[0].package


def test_the_c_library_stays_the_machines() -> None:
    """A newer C library is not started from the cache: the machine's loader would not take it."""
    assert (OPUS, BROWSER) == debian.unpacked(debian.planned(URIS))


def test_apt_writes_into_its_folder_alone() -> None:
    """Lists, archives and caches are below the folder; what is installed is the machine's."""
    lines = debian.settings(Path("/cache/one")).splitlines()
    folders = {line.split('"')[1] for line in lines if line.startswith("Dir::")}

    assert {
        "/var/lib/dpkg/status",
        *(f"/cache/one/{name}" for name in ("state", "cache", "cache/archives")),
    } == folders


def test_what_the_machine_has_is_taken(tmp_path: Path) -> None:
    """A program on the search path comes before one in the cache, by any of its names."""
    (tmp_path / "google-chrome").touch(mode=0o755)
    told = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    own = debian.folder_of(PROMETHEUS, told) / "bin" / "promtool"
    own.parent.mkdir(parents=True)
    own.touch()

    assert {"chromium": tmp_path / "google-chrome"} == debian.find(CHROMIUM, told)
    assert {"promtool": own} == debian.find(PROMETHEUS, told)


OWN = """module k8s.io/kubernetes

replace (
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
)
"""
# Answers as Go does: one object for each module, one after the other.
FAKE_GO = """#!/bin/sh
[ "$1" = version ] && echo go version go1.99.0 linux/amd64 && exit
shift 3
for word in "$@"; do
    name=${{word%@*}}
    if [ "$name" = "{lacking}" ]; then echo '{{"Path": "it", "Error": "403"}}'; continue; fi
    printf '{{"Path": "%s", "Dir": "{sources}", "Sum": "h1:%s", "GoModSum": "h1:mod"}}\\n' \\
        "$name" "${{word#*@}}"
done
"""
PINNED = """k8s.io/kubernetes v1.30.14 h1:v1.30.14
k8s.io/api v0.30.14 h1:v0.30.14
k8s.io/api v0.30.14/go.mod h1:mod
k8s.io/client-go v0.30.14 h1:v0.30.14
k8s.io/client-go v0.30.14/go.mod h1:mod
"""


def fake_go(folder: Path, monkeypatch: pytest.MonkeyPatch, lacking: str = "") -> None:
    (folder / "go.mod").write_text(OWN)
    go = folder / "go"
    go.write_text(FAKE_GO.format(sources=folder, lacking=lacking))
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_release_is_pinned_with_its_staging_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubernetes' own line comes first, samples are left out, and a build can read the result."""
    fake_go(tmp_path, monkeypatch)
    status = pin(["v1.30.14"])
    printed = capsys.readouterr().out
    (tmp_path / "versions.sum").write_text(printed)

    assert (0, PINNED) == (status, printed)
    assert ["1.30"] == list(read_releases(tmp_path / "versions.sum"))


def test_what_cannot_be_fetched_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of which a module is missing is not pinned."""
    fake_go(tmp_path, monkeypatch, lacking="k8s.io/api")
    status = pin(["v1.30.14"])
    captured = capsys.readouterr()

    assert (1, "") == (status, captured.out)
    assert "Go could not fetch everything: 403" in captured.err
