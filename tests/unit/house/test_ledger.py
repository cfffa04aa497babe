"""The figures of the tree fall, and never rise."""

from tests.unit.house.ledger import RECORDED, counted


def test_no_figure_has_grown() -> None:
    """Each figure of the ledger is at most what was recorded when somebody looked last."""
    now = counted()

    assert {} == {name: value for name, value in now.items() if value > RECORDED[name].most}
