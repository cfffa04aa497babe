"""
Workers of all kinds for long: none that is busy goes, and every one that is truly idle does, in
time.
"""

import pytest

from tests.property.controller.mixed import Figures, MixedSite


def held(figures: Figures) -> None:
    print(figures)  # noqa: T201 - the figures are what a soak is for

    assert [] == figures.busy
    assert [] == figures.late
    assert figures.releases


def test_some_hours_of_mixed_workers() -> None:
    """In two hours no busy worker is released, and every idle one within its time and a minute."""
    held(MixedSite(seed=16).run(hours=2))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_days_of_mixed_workers(seed: int) -> None:
    """The same in four days, four times."""
    held(MixedSite(seed).run(hours=96))
