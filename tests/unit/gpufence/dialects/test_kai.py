"""
KAI, which declares by annotation.
"""

from __future__ import annotations

import pytest

from gpufence.quantity import MIB
from tests.support.builders import T4_BYTES, container, pod
from tests.unit.gpufence.dialects.declared import amounts, declared, unreadable


@pytest.mark.parametrize(
    ("annotations", "claim", "basis"),
    [
        ({"gpu-memory": "4096"}, (4096 * MIB, 1), "MiB on each card"),
        ({"gpu-fraction": "0.25"}, (T4_BYTES // 4, 1), "a share of each card"),
        ({"gpu-fraction": ".5"}, (T4_BYTES // 2, 1), "a share of each card"),
        (
            {"gpu-memory": "2000", "gpu-fraction-num-devices": "3"},
            (2000 * MIB, 3),
            "MiB on each card",
        ),
    ],
)
def test_memory_or_fraction_holds_on_each_card(
    annotations: dict[str, str], claim: tuple[int, int], basis: str
) -> None:
    """
    Bare MiB or a share between 0 and 1, on as many cards as asked for.
    """
    found = declared(pod(container(), annotations=annotations))

    assert {"main": claim} == amounts(found)
    assert ("kai", basis) == (found.dialect, found.basis)
    assert not found.library_caps


@pytest.mark.parametrize("text", ["2000mb", "8000Mi", "", "0", "-1", "1.5", "4194305"])
def test_memory_that_kai_cannot_read_never_runs(text: str) -> None:
    """
    KAI ignores what is no bare number of MiB, so somebody has to say so.
    """
    found = unreadable(pod(annotations={"gpu-memory": text}))

    assert found.never_runs
    assert (
        f'metadata.annotations[gpu-memory]: "{text}" is no usable number of bare MiB, and KAI '
        'ignores such without a word; write the MiB alone, such as "4096"'
    ) == found.problem.sentence


@pytest.mark.parametrize("text", ["0", "0.0", "1", "1.0", "25%", "", "-0.5", "0.5 "])
def test_a_fraction_outside_zero_and_one_never_runs(text: str) -> None:
    """
    KAI takes a share of a card only between nothing and all of it.
    """
    found = unreadable(pod(annotations={"gpu-fraction": text}))

    assert found.never_runs
    assert "is not a share between 0 and 1" == found.problem.reason


def test_memory_and_fraction_at_once_are_unreadable() -> None:
    """
    KAI takes one or the other.
    """
    found = unreadable(pod(annotations={"gpu-fraction": "0.5", "gpu-memory": "4096"}))

    assert (
        'metadata.annotations[gpu-memory]: "4096" stands beside gpu-fraction, and KAI takes only '
        "one of them; remove one of the two annotations"
    ) == found.problem.sentence


def test_a_wrong_number_of_devices_is_unreadable() -> None:
    """
    The number of cards is a whole number of at least one.
    """
    annotations = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}

    assert (
        "metadata.annotations[gpu-fraction-num-devices]"
        == unreadable(pod(annotations=annotations)).problem.field
    )


@pytest.mark.parametrize(
    ("wanted", "chosen"), [({}, "a"), ({"gpu-fraction-container-name": "b"}, "b")]
)
def test_one_container_has_the_share(wanted: dict[str, str], chosen: str) -> None:
    """
    The first regular container has it unless another one is named.
    """
    found = declared(
        pod(
            container("a"),
            container("b"),
            init=[container("warm")],
            annotations={"gpu-fraction": "0.5"} | wanted,
        )
    )

    assert [chosen] == [claim.container for claim in found.claims]


def test_a_container_the_pod_does_not_have_is_unreadable() -> None:
    """
    A share for nobody is a mistake; the containers there are named.
    """
    found = unreadable(
        pod(annotations={"gpu-fraction": "0.5", "gpu-fraction-container-name": "other"})
    )

    assert (
        'metadata.annotations[gpu-fraction-container-name]: "other" names no container of the pod; '
        "write one of main"
    ) == found.problem.sentence
