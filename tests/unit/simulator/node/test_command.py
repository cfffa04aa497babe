"""
The command line of the node.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.node.__main__ import _options, _parser, main
from simulator.node.options import NodeOptions
from simulator.node.resources import Taint
from simulator.node.sharing import Dialect, Sharing

KUBECONFIG = Path("/k")


def options(*words: str) -> NodeOptions:
    return _options(_parser().parse_args(words), KUBECONFIG)


def test_everything_can_be_said() -> None:
    """
    Each option reaches the node.
    """
    found = options(
        *("--admin-kubeconfig", "/a", "--name", "n", "--cards", "T4,T4", "--dialect", "gpushare"),
        *("--gpushare-unit", "MiB", "--volcano-factor", "10", "--replicas", "8", "--gfd"),
        *("--write-cards", "--label", "a=b", "--label", "c=", "--address", "10.0.0.1"),
        *("--taint", "nvidia.com/gpu=present:NoSchedule", "--state", "/s", "--proc", "/p"),
    )

    assert found == NodeOptions(
        kubeconfig=KUBECONFIG,
        name="n",
        admin_kubeconfig=Path("/a"),
        cards="T4,T4",
        sharing=Sharing(Dialect.GPUSHARE, "MiB", 10, 8),
        gfd=True,
        write_cards=True,
        labels={"a": "b", "c": ""},
        taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"),),
        address="10.0.0.1",
        state=Path("/s"),
        proc=Path("/p"),
    )


def test_little_need_be_said() -> None:
    """
    Without options it is one plain node.
    """
    assert options() == NodeOptions(kubeconfig=KUBECONFIG)


def test_a_taint_may_have_no_value() -> None:
    """
    A taint's value may be left out.
    """
    assert (Taint("dedicated", "", "NoExecute"),) == options(
        "--taint", "dedicated:NoExecute"
    ).taints


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--label", "nothing"), "'nothing' is no label; write KEY=VALUE"),
        (("--taint", "a=b"), "'a=b' is no taint; write KEY=VALUE:NoSchedule"),
        (("--taint", "a=b:Now"), "'a=b:Now' is no taint; write KEY=VALUE:NoSchedule"),
        (("--replicas", "0"), "0 is too small; write a number from 1 on"),
        (("--dialect", "magic"), "invalid choice: 'magic'"),
        (("--write-cards", "--no-cards"), "not allowed with"),
    ],
)
def test_mistakes_are_named(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    What cannot be read is named with the way to write it.
    """
    with pytest.raises(SystemExit):
        options(*words)

    assert message in capsys.readouterr().err


def test_a_cluster_must_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Without any kubeconfig the command says how to give one.
    """
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert 2 == main([])
    assert "name --kubeconfig or set KUBECONFIG" in capsys.readouterr().err
