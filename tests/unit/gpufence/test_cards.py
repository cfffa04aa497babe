"""The cards annotation of a Node."""

import json
from typing import Any

import pytest

from gpufence.cards import read_capability, read_cards, write_cards
from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.quantity import GIB
from tests.support.builders import card, node_cards


def written(**changes: object) -> str:
    """Return the annotation of one card with some of the card's fields changed."""
    said: dict[str, Any] = json.loads(write_cards(node_cards(card())))
    said["cards"][0] |= changes
    return json.dumps(said)


def test_the_annotation_is_one_line_of_versioned_json() -> None:
    """People and programs can read what an agent says about its node."""
    said = node_cards(card(), units={"aliyun.com/gpu-mem": "GiB"}, factor=1)

    assert (
        '{"v":1,"driver":"570.124.06","observed":"2026-01-02T03:04:05Z",'
        '"units":{"aliyun.com/gpu-mem":"GiB"},"factor":1,"cards":['
        '{"uuid":"GPU-0","index":0,"model":"Tesla T4","memory":"15360Mi","cc":"7.5"}]}'
    ) == write_cards(said)


@pytest.mark.parametrize(
    "cards",
    [
        (),
        (card(), card(1, compute_capability=None)),
        (card(uuid="GPU-a"), card(memory_bytes=5 * GIB, parent="GPU-a", profile="1g.5gb")),
        (card(memory_bytes=12_884_705_281),),
    ],
    ids=["none", "unknown capability", "instance", "odd size"],
)
def test_what_is_written_reads_back(cards: tuple[Any, ...]) -> None:
    """Cards survive the way through the annotation exactly."""
    said = node_cards(*cards, units={"aliyun.com/gpu-mem": "MiB"})

    assert said == read_cards(write_cards(said))


def test_fields_of_a_newer_agent_are_ignored() -> None:
    """A field this program does not know changes nothing it does."""
    assert node_cards(card()) == read_cards(written(temperature=40))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"memory": "0"}, "memory"),
        ({"memory": "much"}, "memory"),
        ({"memory": None}, "memory"),
        ({"index": -1}, "index"),
        ({"uuid": 1}, "uuid"),
        ({"mig": []}, "mig"),
        ({"mig": {"parent": 1}}, "mig.parent"),
    ],
)
def test_a_broken_card_is_named(change: dict[str, object], field: str) -> None:
    """The error says which field of which card is wrong."""
    with pytest.raises(InvalidError) as caught:
        read_cards(written(**change))

    assert f"gpufence.io/cards.cards[0].{field}" == caught.value.problem.field


@pytest.mark.parametrize("factor", [0, "1", 1.5])
def test_a_broken_factor_is_named(factor: object) -> None:
    """Volcano's factor is a whole number of at least one."""
    with pytest.raises(InvalidError, match=r"^gpufence.io/cards.factor: "):
        read_cards(json.dumps({"v": 1, "factor": factor}))


def test_a_newer_version_is_named() -> None:
    """What a newer agent wrote is not guessed at."""
    with pytest.raises(UnknownVersionError):
        read_cards('{"v":2}')


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("7.5", (7, 5)),
        ("12.0", (12, 0)),
        ("", None),
        ("8", None),
        ("8.x", None),
        ("x.1", None),
        ("-8.0", None),
    ],
)
def test_a_compute_capability_is_two_numbers(text: str, capability: tuple[int, int] | None) -> None:
    """Anything else is unknown rather than guessed."""
    assert capability == read_capability(text)
