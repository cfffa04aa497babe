"""
Where programs are looked for.
"""

from pathlib import Path

import pytest

from simulator.controlplane import Assets, BuildError
from simulator.controlplane.build import cache_folder, main


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
    """
    An absolute XDG_CACHE_HOME names the cache; otherwise it is in the home folder.
    """
    assert Path(folder) == cache_folder(environment)


def test_homeless_user_is_told() -> None:
    """
    Without any place for a cache the error says which variable to set.
    """
    with pytest.raises(BuildError, match="neither XDG_CACHE_HOME nor HOME"):
        cache_folder({})


def test_given_folder_must_exist() -> None:
    """
    A KUBEBUILDER_ASSETS that leads nowhere is an error, not a reason to build.
    """
    with pytest.raises(BuildError, match="KUBEBUILDER_ASSETS is '/nowhere', which is not a folder"):
        Assets.from_environment({"KUBEBUILDER_ASSETS": "/nowhere", "HOME": "/"})


def test_relative_given_folder_holds_after_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A relative KUBEBUILDER_ASSETS is fixed once, since programs run in another folder.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    assets = Assets.from_environment({"KUBEBUILDER_ASSETS": "given", "HOME": "/"})

    assert tmp_path / "given" == assets.given


def test_command_prints_where_programs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    `build` prints a path per component.
    """
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    status = main(["etcd"])

    assert (0, f"{tmp_path}/etcd\n") == (status, capsys.readouterr().out)


def test_command_knows_its_components(capsys: pytest.CaptureFixture[str]) -> None:
    """
    `build` refuses a misspelt component before it does anything.
    """
    with pytest.raises(SystemExit, match="2"):
        main(["etdc"])
    assert "no component 'etdc'; there are etcd" in capsys.readouterr().err
