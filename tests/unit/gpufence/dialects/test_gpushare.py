"""
Aliyun gpushare.
"""

from __future__ import annotations

import pytest

from gpufence.dialects import Sum, Units
from gpufence.quantity import GIB, MIB
from tests.support.builders import gpushare, pod
from tests.unit.gpufence.dialects.declared import amounts, declared, unreadable


@pytest.mark.parametrize(
    ("units", "unit", "size", "basis"),
    [
        ("3", GIB, 3 * GIB, "units of 1Gi"),
        ("3803", MIB, 3803 * MIB, "units of 1Mi (MiB node)"),
        ("1k", MIB, 1000 * MIB, "units of 1Mi (MiB node)"),
    ],
)
def test_units_are_the_nodes(units: str, unit: int, size: int, basis: str) -> None:
    """
    The number counts GiB or MiB, as the node's device plugin does.
    """
    found = declared(pod(gpushare(units=units)), Units(gpushare_bytes=unit))

    assert {"main": (size, 1)} == amounts(found)
    assert ("gpushare", basis, Sum.REGULAR) == (found.dialect, found.basis, found.sum)
    assert not found.implied
    assert not found.library_caps


def test_several_containers_draw_a_note() -> None:
    """
    Gpushare starts a pod with several GPU containers on one-card nodes only.
    """
    (note,) = declared(pod(gpushare("a"), gpushare("b"))).notes

    assert (
        'aliyun.com/gpu-mem: "a, b" is asked for by several containers, which gpushare starts on '
        "one-card nodes only; ask for it in one container"
    ) == note.sentence


def test_an_init_container_draws_a_note() -> None:
    """
    Gpushare does not count what an init container asks for.
    """
    (note,) = declared(pod(init=[gpushare("warm")])).notes

    assert (
        'aliyun.com/gpu-mem: "warm" is asked for by an init container, which gpushare does not '
        "count; ask for it in a regular container"
    ) == note.sentence


def test_an_uncertain_unit_is_unreadable() -> None:
    """
    A guess could be wrong by a factor of 1024, so the node's figures are to be looked at.
    """
    found = unreadable(pod(gpushare()), Units(gpushare_bytes=None))

    assert not found.never_runs
    assert (
        'aliyun.com/gpu-mem: "3" has no certain unit: the node\'s figures fit neither GiB nor MiB; '
        "compare its allocatable aliyun.com/gpu-mem and aliyun.com/gpu-count with its cards"
    ) == found.problem.sentence


@pytest.mark.parametrize("units", ["10G", "4097", "9e18"])
def test_more_than_any_card_never_runs(units: str) -> None:
    """
    A suffix makes bytes of a number of units, and no node can ever serve those.
    """
    found = unreadable(pod(gpushare(units=units)))

    assert found.never_runs
    assert "write the plain number of units, without a suffix" == found.problem.remedy
