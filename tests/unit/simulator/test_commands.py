"""`python -m simulator` finds its commands."""

import pytest

from simulator.__main__ import COMMANDS, main


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The overview names all commands on standard output."""
    status = main(["--help"])
    shown = capsys.readouterr().out

    assert 0 == status
    assert all(f"  {command.name} " in shown for command in COMMANDS)


def test_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt command is quoted back beside the known ones."""
    assert 2 == main(["contrlplane"])
    assert "no command 'contrlplane'" in capsys.readouterr().err


def test_arguments_are_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows the command is the command's own."""
    with pytest.raises(SystemExit, match="0"):
        main(["controlplane", "--help"])
    assert "--controller-manager" in capsys.readouterr().out
