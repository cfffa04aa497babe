"""
How a machine's cards are written.
"""

import pytest

from gpufence.errors import InvalidError
from simulator.nvml.cards import read_cards


def keys(text: str) -> list[str]:
    return [card.model.key for card in read_cards(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T4", ["T4"]),
        ("t4, l4", ["T4", "L4"]),
        ("V100", ["V100-16"]),
        ("2xA100-40,H100", ["A100-40", "A100-40", "H100"]),
        ("16xT4", ["T4"] * 16),
    ],
)
def test_cards_are_a_list_of_models(text: str, expected: list[str]) -> None:
    """
    Models are named in any case, several of one at a time.
    """
    assert expected == keys(text)


def test_a_cut_card_names_its_instances() -> None:
    """
    Behind a colon stand the instances of a card in MIG mode.
    """
    (card,) = read_cards("A100-80:3g.40gb+1g.10gb")

    assert card.instances is not None
    assert ["3g.40gb", "1g.10gb"] == [profile.name for profile in card.instances]


def test_a_card_can_be_in_mig_mode_without_instances() -> None:
    """
    A bare colon is MIG mode before anybody has cut the card.
    """
    assert () == read_cards("H100:")[0].instances


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("K80", '"K80" is no known card; use one of T4, V100-16'),
        ("", '"" is no card; write a model such as T4'),
        ("T4,,T4", '"" is no card'),
        ("T4 T4", '"T4 T4" is no card'),
        ("17xT4", "makes 17 cards; name 1 to 16"),
        ("0xT4", "makes 0 cards; name 1 to 16"),
        ("T4:1g.5gb", "has no MIG mode; cut an A100 or an H100"),
        ("A100-40:1g.10gb", '"1g.10gb" is no MIG profile of this card; use one of 1g.5gb'),
        ("A100-40:4g.20gb+4g.20gb", "takes more than the 7 slices"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, complaint: str) -> None:
    """
    An error quotes the word and says what could stand there.
    """
    with pytest.raises(InvalidError) as caught:
        read_cards(text)

    assert complaint in str(caught.value)
