"""
What an Event or a refusal says: a short first sentence, the value that would do, the command that
explains the pod, and the link to the page about it.

Every text is put together here, so that one length and one order hold for agent, controller and
webhook: what is cut is what comes between, never the command or the link.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gpufence.names import MEMORY
from gpufence.text import printable

if TYPE_CHECKING:
    from gpufence.cards import Card


class Anchor(StrEnum):
    """The parts of docs/my-pod.md that a link may lead to."""

    REFUSED = "refused"
    CAPPED = "capped"
    EVICTED = "evicted"
    RELEASED = "released"


MOST_FIRST: Final = 160
"""Characters of a first sentence, names not counted."""
MOST_TEXT: Final = 400
MOST_HELP_URL: Final = 100
MOST_SAID: Final = MOST_TEXT - MOST_HELP_URL - max(map(len, Anchor)) - len(" #")
"""Characters of a text before its link."""
MOST_NAME: Final = 20
_MOST_TYPED: Final = 63  # a longer name is not typed from an Event
_DOTS: Final = "..."
_COMMAND: Final = "kubectl gpufence explain"
_MEBIBYTE: Final = 2**20
_WORTH_READING: Final = 60  # characters of a sentence that is cut


def shortened(name: str, most: int = MOST_NAME) -> str:
    """Cut a name that others chose in the middle: both ends tell pods of one owner apart."""
    if len(name) <= most:
        return printable(name)
    tail = (most - len(_DOTS)) // 2
    head = most - len(_DOTS) - tail
    return printable(f"{name[:head]}{_DOTS}{name[-tail:]}")


def named_card(card: Card) -> str:
    """Name a card by what people know of it; its UUID is for `explain`."""
    return f"card {card.index} ({shortened(card.full_model.removeprefix('NVIDIA '))})"


def would_do(enough_bytes: int, card_bytes: int | None = None) -> str:
    """Say which limit would do, and where it is written."""
    if card_bytes is not None and enough_bytes > card_bytes:
        return "More than this card has: let it use less."
    return f"About {-(-enough_bytes // _MEBIBYTE)}Mi would do ({MEMORY} or its request)."


def explain_command(pod: str) -> str:
    """Return what to type; a name too long to be typed is named so that it can be found."""
    if len(pod) <= _MOST_TYPED:
        return f"{_COMMAND} {printable(pod)}"
    return f"{_COMMAND} POD (POD: {shortened(pod)})"


def event_text(first: str, *more: str, last: str = "", most: int = MOST_SAID) -> str:
    """Join sentences; before the `last` one may be cut, or left out if little of it is left."""
    room = most - len(last) - bool(last)
    text = _cut(first, room)
    for sentence in filter(None, more):
        left = room - len(text) - 1
        text += f" {_cut(sentence, left)}" if left >= min(len(sentence), _WORTH_READING) else ""
    return f"{text} {printable(last)}" if last else text


def with_link(text: str, help_url: str, anchor: Anchor | None) -> str:
    """End a text with the link to the page about it, if there is such a page."""
    link = f" {help_url}#{anchor}" if help_url and anchor else ""
    return _cut(text, MOST_TEXT - len(link)) + link


def _cut(text: str, most: int) -> str:
    return printable(text) if len(text) <= most else printable(text, most - len(_DOTS))
