"""
The command line of the node.
"""

from pathlib import Path

import pytest

from simulator.node.__main__ import _parser, main
from simulator.node.node import NodeOptions


def options(*words: str) -> NodeOptions:
    return NodeOptions(**vars(_parser().parse_args(["--kubeconfig", "/k", *words])))


def test_each_option_reaches_the_node() -> None:
    """
    Whatever is named on the command line is what the node is asked to be.
    """
    words = (
        "--admin-kubeconfig",
        "/a",
        "--name",
        "n",
        "--cards",
        "T4,T4",
        "--gpushare-unit",
        "MiB",
    )

    assert options(*words) == NodeOptions(
        kubeconfig=Path("/k"), name="n", admin_kubeconfig=Path("/a"), cards="T4,T4", unit="MiB"
    )


def test_without_options_it_is_one_plain_node() -> None:
    """
    The command's defaults are those of a program that names nothing.
    """
    assert options() == NodeOptions(kubeconfig=Path("/k"))


def test_a_cluster_must_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Without any kubeconfig the command says how to give one.
    """
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert 2 == main([])
    assert "name --kubeconfig or set KUBECONFIG" in capsys.readouterr().err
