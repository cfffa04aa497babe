"""
The command line, as far as it starts nothing.
"""

import pytest

from simulator.cluster.__main__ import main, parser
from simulator.cluster.setup import ClusterOptions


def test_the_defaults_are_the_options() -> None:
    """
    Who names nothing gets what a program gets that names nothing.
    """
    arguments = parser().parse_args([])

    assert ClusterOptions() == ClusterOptions(
        arguments.node, arguments.cards, arguments.gpushare_unit
    )


def test_preparing_and_cleaning_exclude_each_other() -> None:
    """
    One does not do two things that start nothing.
    """
    with pytest.raises(SystemExit):
        main(["--prepare", "--clean"])


def test_help_names_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Whoever asks learns what to install.
    """
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out

    assert "containernetworking-plugins" in shown
    assert "--install" in shown
