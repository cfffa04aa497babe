"""
Temporary folders with an owner.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane.errors import StartError
from simulator.controlplane.folders import PREFIX, given_folder, sweep, temporary_folder


@pytest.fixture
def short_path() -> Iterator[Path]:
    """
    A folder whose name leaves room for sockets below it, which pytest's own may not.
    """
    with tempfile.TemporaryDirectory(prefix="gf-", dir="/tmp") as name:
        yield Path(name)


def test_temporary_folder_disappears(short_path: Path) -> None:
    """
    Leaving a temporary folder removes it with all that is in it.
    """
    folder = temporary_folder(short_path)
    (folder.path / "data").mkdir()
    (folder.path / "data" / "file").touch()
    folder.leave()

    assert [] == list(short_path.iterdir())


def test_sweep_removes_the_abandoned(tmp_path: Path) -> None:
    """
    A folder that nobody holds any more is removed.
    """
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / "file").touch()

    assert [abandoned] == sweep(tmp_path)
    assert not abandoned.exists()


def test_sweep_spares_what_is_not_ours(tmp_path: Path) -> None:
    """
    Other names, and links that carry our name to elsewhere, are left alone.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)

    assert [] == sweep(tmp_path)
    assert elsewhere.exists()


def test_named_folder_must_be_empty(short_path: Path) -> None:
    """
    Somebody else's files are not mixed with ours.
    """
    (short_path / "file").touch()

    with pytest.raises(StartError, match="is not empty; name a new one or empty it"):
        given_folder(short_path)


def test_named_folder_serves_one(short_path: Path) -> None:
    """
    Two control planes cannot share a folder.
    """
    folder = given_folder(short_path)
    try:
        with pytest.raises(StartError, match="is used by another control plane"):
            given_folder(short_path)
    finally:
        folder.leave()


def test_long_name_leaves_no_room_for_sockets(tmp_path: Path) -> None:
    """
    A folder whose name is too long for sockets in it is refused.
    """
    with pytest.raises(StartError, match=r"longer than 92 bytes.*choose a shorter one"):
        given_folder(tmp_path / ("x" * 90))
