"""
`python -m simulator` finds its commands.
"""

from pathlib import Path

import pytest

from simulator.__main__ import COMMANDS, main


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The overview names all commands on standard output.
    """
    status = main(["--help"])
    shown = capsys.readouterr().out

    assert 0 == status
    assert all(f"  {command.name} " in shown for command in COMMANDS)


def test_no_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Called without a command it shows the overview as an error.
    """
    assert 2 == main([])
    assert "usage: python -m simulator <command>" in capsys.readouterr().err


def test_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """
    A misspelt command is quoted back beside the known ones.
    """
    assert 2 == main(["contrlplane"])
    assert "no command 'contrlplane'" in capsys.readouterr().err


def test_arguments_are_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """
    What follows the command is the command's own.
    """
    with pytest.raises(SystemExit, match="0"):
        main(["controlplane", "--help"])
    assert "--controller-manager" in capsys.readouterr().out


def test_status_is_handed_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A command's failure is the program's failure.
    """
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "absent"))

    assert 1 == main(["controlplane"])
    assert "which is not a folder" in capsys.readouterr().err
