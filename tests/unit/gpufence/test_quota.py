"""What counts on a namespace's quota of memory: amounts that stand in annotations alone."""

from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import read_namespace_options
from gpufence.mode import Mode
from gpufence.plan import Plan, write_plan
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.quota import AskedMemory, amount_key, asked_of
from tests.support.builders import container, pod

MEMORY = {names.MEMORY: "4Gi"}
GPU = {names.NVIDIA_GPU: "1"}
CEILING = write_plan(Plan(Mode.EVICT, "kai", None, namespace={names.MAX_MEMORY: "3Gi"}))


@pytest.mark.parametrize(
    ("annotations", "resources", "expected"),
    [
        pytest.param(MEMORY, {}, AskedMemory(4 * GIB), id="no resource at all"),
        pytest.param(MEMORY, GPU, AskedMemory(4 * GIB), id="on one card"),
        pytest.param(MEMORY, {names.NVIDIA_GPU: "2"}, AskedMemory(4 * GIB, 2), id="on each of two"),
        pytest.param(
            {**MEMORY, names.BURST: "10Gi"}, GPU, AskedMemory(4 * GIB), id="what is promised"
        ),
        pytest.param({names.KAI_MEMORY: "4096"}, {}, AskedMemory(4 * GIB), id="KAI"),
        pytest.param(
            {names.KAI_MEMORY: "4096", names.KAI_DEVICES: "3"},
            {},
            AskedMemory(4 * GIB, 3),
            id="on three",
        ),
        pytest.param(
            {names.KAI_FRACTION: "0.25", names.KAI_DEVICES: "2"},
            {},
            AskedMemory(1024 * GIB, 2, (25, 100)),
            id="a share",
        ),
        pytest.param(
            {names.KAI_FRACTION: "0.5", **MEMORY},
            {},
            AskedMemory(4 * GIB, 1, (5, 10)),
            id="at most",
        ),
        pytest.param(
            {names.KAI_FRACTION: "0.5", names.PLAN: CEILING},
            {},
            AskedMemory(3 * GIB, 1, (5, 10)),
            id="below the namespace's ceiling when it was made",
        ),
        pytest.param(
            {f"{names.MEMORY_OF_CONTAINER}main": "1Gi"}, {}, AskedMemory(GIB), id="a container's"
        ),
        pytest.param(
            {names.KAI_MEMORY: "lots", **MEMORY}, {}, AskedMemory(4 * GIB), id="one is readable"
        ),
        pytest.param({}, {names.NVIDIA_GPU: "1"}, None, id="no amount"),
        pytest.param(MEMORY, {names.HAMI_MEMORY: "4096", names.NVIDIA_GPU: "1"}, None, id="HAMi"),
        pytest.param({names.MEMORY: "lots"}, {}, None, id="none is readable"),
        pytest.param({names.KAI_DEVICES: "2"}, {}, None, id="cards alone"),
    ],
)
def test_amounts_in_annotations_count(
    annotations: dict[str, str], resources: dict[str, str], expected: AskedMemory | None
) -> None:
    """On each card, and not where a resource says how much: that a ResourceQuota counts."""
    assert expected == asked_of(
        read_pod(pod(container("main", **resources), annotations=annotations))
    )


def test_containers_that_run_together_add_up() -> None:
    """The pod's amount is split among them."""
    both = [container("a", **GPU), container("b", **GPU)]

    assert AskedMemory(4 * GIB) == asked_of(read_pod(pod(*both, annotations=MEMORY)))


def test_a_share_is_of_the_card() -> None:
    """And never more than the pod's own amount; bytes do not ask for the card's size."""
    share = AskedMemory(4 * GIB, 2, (1, 4))

    assert [4 * GIB, 8 * GIB] == [share.on(size * GIB) for size in (8, 80)]
    assert 5 * MIB == AskedMemory(5 * MIB).on(0)


@pytest.mark.parametrize(
    ("annotations", "key"),
    [
        ({names.KAI_FRACTION: "0.5", "a": "b"}, names.KAI_FRACTION),
        ({"a": "b"}, names.MEMORY),
    ],
)
def test_the_key_that_asks_is_named(annotations: dict[str, str], key: str) -> None:
    """It is what a refusal is about."""
    assert key == amount_key(annotations)


@pytest.mark.parametrize(
    ("text", "expected"), [("40Gi", 40 * GIB), ("0", 0), ("lots", None), ("40", None)]
)
def test_a_quota_is_an_amount_with_its_unit_or_none_at_all(text: str, expected: int | None) -> None:
    """A bare number is a forgotten unit."""
    options: Any = read_namespace_options({names.QUOTA_MEMORY: text})

    assert expected == options.quota_bytes
    assert (expected is None) == bool(options.unreadable)
