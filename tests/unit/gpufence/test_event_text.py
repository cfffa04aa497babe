"""What an Event says: its order, its lengths, and what of it is cut."""

from dataclasses import dataclass, field

import pytest

from gpufence.cards import Card
from gpufence.errors import SettingsError
from gpufence.event_text import (
    MOST_NAME,
    MOST_SAID,
    MOST_TEXT,
    Anchor,
    event_text,
    explain_command,
    named_card,
    shortened,
    with_link,
    would_do,
)
from gpufence.quantity import GIB, MIB
from gpufence.settings import HELP_URL, read_settings

PAGE = "https://wiki.example.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    page: str = field(default="", metadata=HELP_URL)


def test_a_long_name_keeps_both_ends() -> None:
    """Names are cut in the middle, and what would steer a terminal is a question mark."""
    assert "greedy-7d9c-abcde" == shortened("greedy-7d9c-abcde")
    assert "aaaaaaaaa...cccccccc" == shortened("a" * 60 + "b" + "c" * 60)
    assert MOST_NAME == len(shortened("x" * 999))
    assert "a?b" == shortened("a\nb")


def test_a_card_is_named_by_index_and_model() -> None:
    """Neither UUID nor maker takes a place in the sentence."""
    card = Card("GPU-329de2de", 1, "NVIDIA A100-SXM4-80GB", 80 * GIB)

    assert "card 1 (A100-SXM4-80GB)" == named_card(card)


@pytest.mark.parametrize(
    ("enough", "card", "text"),
    [
        (4 * GIB, None, "About 4096Mi would do (gpufence.io/memory or its request)."),
        (4 * GIB - MIB + 1, 4 * GIB, "About 4096Mi would do (gpufence.io/memory or its request)."),
        (5 * GIB, 4 * GIB, "More than this card has: let it use less."),
    ],
)
def test_the_value_that_would_do(enough: int, card: int | None, text: str) -> None:
    """It is rounded up, and said as a remedy only where a card can give it."""
    assert text == would_do(enough, card)


def test_the_command_names_the_pod_in_full_or_not_at_all() -> None:
    """A cut name is never part of what is typed."""
    assert "kubectl gpufence explain greedy" == explain_command("greedy")
    assert explain_command("p" * 64).startswith("kubectl gpufence explain POD (POD: ppp")


def test_what_finds_no_place_is_left_out() -> None:
    """First and last sentence stay; of the others one is cut, unless little of it would be left."""
    long = "x" * MOST_SAID

    assert "One. Two. Type." == event_text("One.", "", "Two.", last="Type.")
    assert MOST_SAID == len(event_text("One.", long, "Two.", last="Type."))
    assert event_text("One.", long, last="Type.", most=80).endswith("xxx... Type.")
    assert "One. Type." == event_text("One.", long, last="Type.", most=70)
    assert "One." == event_text("One.")
    assert MOST_SAID == len(event_text(long + "y", last="Type."))
    assert event_text(long + "y", last="Type.").endswith("xxx... Type.")


def test_a_link_is_never_cut() -> None:
    """A text ends with the link to its part of the page, whatever stands before it."""
    assert "Said." == with_link("Said.", "", Anchor.EVICTED)
    assert "Said." == with_link("Said.", PAGE, None)
    assert f"Said. {PAGE}#evicted" == with_link("Said.", PAGE, Anchor.EVICTED)
    assert MOST_TEXT == len(with_link("\n" * 999, PAGE, Anchor.CAPPED))
    assert with_link("\n" * 999, PAGE, Anchor.CAPPED).endswith(f"??... {PAGE}#capped")


@pytest.mark.parametrize(
    "text",
    [
        "wiki",
        "ftp://wiki.example.com",
        "https://wiki.example.com/gpu#evicted",
        "https://me:secret@wiki.example.com",
        "https://wiki.example.com/a b",
        "https://wiki.example.com/" + "x" * 100,
    ],
)
def test_a_page_that_no_link_can_lead_to(text: str) -> None:
    """Links end with a part of the page, are short, and repeat no password."""
    with pytest.raises(
        SettingsError, match=r"GPUFENCE_HELP_URL: .* is no address of a page"
    ) as caught:
        read_settings(Linking, {"GPUFENCE_HELP_URL": text})

    assert "secret" not in str(caught.value)


def test_a_page_that_users_are_led_to() -> None:
    """Where no page is named there is no link."""
    page = "https://wiki.example.com/pages?id=1"

    assert (page, "") == (
        read_settings(Linking, {"GPUFENCE_HELP_URL": page}).page,
        read_settings(Linking, {}).page,
    )
