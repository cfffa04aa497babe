"""Where the programs of a control plane are looked for, and how they are built."""

from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.controlplane import recipe as recipes
from simulator.controlplane.build import cache_folder, main
from simulator.controlplane.errors import BuildError


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


def test_homeless_user_is_told() -> None:
    """Without any place for a cache the error says which variable to set."""
    with pytest.raises(BuildError, match="neither XDG_CACHE_HOME nor HOME"):
        cache_folder({})


def test_given_folder_must_exist() -> None:
    """A KUBEBUILDER_ASSETS that leads nowhere is an error, not a reason to build."""
    with pytest.raises(BuildError, match="KUBEBUILDER_ASSETS is '/nowhere', which is not a folder"):
        Assets.from_environment({"KUBEBUILDER_ASSETS": "/nowhere", "HOME": "/"})


def test_relative_given_folder_holds_after_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative KUBEBUILDER_ASSETS is fixed once, since programs run in another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    assets = Assets.from_environment({"KUBEBUILDER_ASSETS": "given", "HOME": "/"})

    assert tmp_path / "given" == assets.given


def test_command_prints_where_programs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`build` prints a path per component."""
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    status = main(["etcd"])

    assert (0, f"{tmp_path}/etcd\n") == (status, capsys.readouterr().out)


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


def test_every_staging_module_is_of_the_same_release() -> None:
    """All replaced modules carry the minor and patch of Kubernetes itself."""
    lines = (recipes.SOURCES / "go.mod").read_text().splitlines()
    replaced = [line.split()[-1] for line in lines if " => " in line]

    assert ["v0.37.1"] * 31 == replaced


def test_every_component_is_kept_by_the_module_file() -> None:
    """Each component's package is a tool of go.mod, so that tidying keeps what it needs."""
    lines = {line.strip() for line in (recipes.SOURCES / "go.mod").read_text().splitlines()}

    assert {known.package for known in recipes.COMPONENTS} <= lines


def test_programs_are_told_their_version() -> None:
    """The linker writes the Kubernetes version into the programs."""
    flags = recipes.read_recipe().module.linker_flags

    assert "version.gitVersion=v1.37.1 " in flags
    assert flags.endswith("version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37")


def test_digest_is_stable(tmp_path: Path) -> None:
    """Equal sources share a cache folder, wherever they lie."""
    assert recipes.read_recipe().digest == recipes.read_recipe(copied(tmp_path)).digest


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_changed_sources_get_a_folder_of_their_own(tmp_path: Path, name: str) -> None:
    """A change in either module file changes the cache folder."""
    with (copied(tmp_path) / name).open("a") as file:
        file.write("\n")
    before, after = recipes.read_recipe(), recipes.read_recipe(tmp_path)

    assert before.cache_folder(tmp_path) != after.cache_folder(tmp_path)


def test_module_file_without_version_is_told(tmp_path: Path) -> None:
    """A go.mod that pins no Kubernetes is an error that names the file."""
    (copied(tmp_path) / "go.mod").write_text("module none\n\ngo 1.26.0\n")

    with pytest.raises(BuildError, match=r"go\.mod has no line that matches"):
        recipes.read_recipe(tmp_path)


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.26", (1, 26, 0)), ("1.26.8", (1, 26, 8)), ("1.27rc1", (1, 27, 0)), ("2.0.1-x", (2, 0, 1))],
)
def test_version_is_read(text: str, version: recipes.Version) -> None:
    """Go's ways of writing a version are all read."""
    assert version == recipes.parse_version(text)


@pytest.mark.parametrize(
    ("machine", "name"),
    [("x86_64", "linux-amd64"), ("aarch64", "linux-arm64"), ("riscv64", "linux-riscv64")],
)
def test_platform_is_named_as_go_does(
    monkeypatch: pytest.MonkeyPatch, machine: str, name: str
) -> None:
    """Machines carry Go's names."""
    monkeypatch.setattr("platform.machine", lambda: machine)

    assert name == recipes.platform_name()


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off Linux the error says what is needed."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    with pytest.raises(BuildError, match="runs on Linux, this is Darwin; use a Linux machine"):
        recipes.platform_name()
