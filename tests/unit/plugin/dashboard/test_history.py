"""
The hour's line of each card.
"""

from kubectl_gpufence.dashboard.history import HOUR_SECONDS, STEP_SECONDS, CardHistory

FULL = {"gpu-1/GPU-0": (500, 1000)}


def test_points_are_thousandths_of_the_card_and_how_long_ago() -> None:
    """
    What nobody knew is null, of a card of no size as well; no look is taken twice.
    """
    history = CardHistory()
    history.add(1, 100.0, FULL)
    history.add(2, 105.0, {"gpu-1/GPU-0": (999, 1000)})
    history.add(3, 110.0, {"gpu-1/GPU-0": (None, 1000), "gpu-1/GPU-1": (0, 0)})

    assert {
        "ago": [20.0, 10.0],
        "cards": {"gpu-1/GPU-0": [500, None], "gpu-1/GPU-1": [None, None]},
    } == history.since(0, 120.0)


def test_who_knows_the_earlier_points_gets_the_later_ones() -> None:
    """
    An open page is not told again what it has been told.
    """
    history = CardHistory()
    history.add(1, 100.0, FULL)
    history.add(7, 130.0, {"gpu-1/GPU-0": (250, 1000)})

    assert {"ago": [0.0], "cards": {"gpu-1/GPU-0": [250]}} == history.since(1, 130.0)
    assert {"ago": [], "cards": {}} == history.since(7, 130.0)


def test_an_hour_is_remembered() -> None:
    """
    However long somebody watches.
    """
    history = CardHistory()
    for number in range(1000):
        history.add(number, number * STEP_SECONDS, FULL)

    ago = history.since(0, 999 * STEP_SECONDS)["ago"]
    assert isinstance(ago, list)
    assert (HOUR_SECONDS / STEP_SECONDS, HOUR_SECONDS - STEP_SECONDS) == (len(ago), ago[0])
