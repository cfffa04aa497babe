"""What stands between a Python and the plugin's file with it is said with the remedy."""

import sys
from pathlib import Path

import pytest

from tools.release.archive import ReleaseError, zipped
from tools.release.standalone import frozen, this_platform


def test_a_python_without_pyinstaller_is_told() -> None:
    """Where PyInstaller does not run, its words and the remedies are in the error."""
    application = zipped({"__main__.py": b"", "licenses/x/LICENSE": b"free"}, 7)

    with pytest.raises(ReleaseError, match=r"(?s)No module named PyInstaller.*STANDALONE=0"):
        frozen(Path(sys.executable), "plugin", application, 7)


def test_a_platform_has_krews_words() -> None:
    """Processors are called as Go calls them."""
    system, machine = this_platform()

    assert sys.platform == system
    assert machine not in {"x86_64", "aarch64"}
