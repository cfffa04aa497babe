"""
PURE. Where among the words of a command a server's flag can be put in, so that it reaches that
server and a flag of the user's behind it still wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.frameworks.programs import StartKind
from webhook.frameworks.recognise import verbs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.frameworks.argv import Arg, Place
    from webhook.frameworks.programs import StartedProgram

_LONGEST_SHOWN = 80
_MODEL_FIRST = frozenset(("serve", "run"))
"""Verbs behind which the model stands, if it stands there: vLLM and SGLang take the first word."""

_AFTER_DASHES = frozenset(("comfy",))
"""Programs that hand on only what stands behind two dashes."""


class Edit(NamedTuple):
    """
    What to do about an argument: `place` is where one is replaced, or put in where it is empty;
    None where it is appended.
    """

    text: str
    place: Place | None = None


def behind_head(program: StartedProgram) -> Place | None:
    """Return where a flag can be put in right behind the words by which a program is known."""
    words, count = program.words, _head(program)
    return _tail(words, count - 1) if 0 < count <= len(words) else None


def behind_all(program: StartedProgram) -> Place | None:
    """Return where a flag can be put in behind all words, as the last, which is what counts."""
    words = program.words
    last = words[-1]
    if len(words) < 2 or not last.exact or (last.text.startswith("-") and "=" not in last.text):  # noqa: PLR2004 - a name and a word
        return None
    return last.tail


def known_by(program: StartedProgram) -> str:
    """Return the words behind which a flag belongs, as people know them."""
    words = [word.text for word in program.words[: max(_head(program), 1)]]
    head = ["-m", *words] if program.kind is StartKind.MODULE else words
    return " ".join(head)[:_LONGEST_SHOWN]


def takes_flags(program: StartedProgram) -> bool:
    """Return whether a flag that is appended to a program's arguments is one of its server's."""
    return program.name not in _AFTER_DASHES or any(arg.text == "--" for arg in program.args)


def _head(program: StartedProgram) -> int:
    """Return how many of a program's words come before its flags; zero where that is unclear."""
    words = [word.text for word in program.words]
    if program.name in _AFTER_DASHES:
        return words.index("--") + 1 if "--" in words else 0
    name = program.name.partition(".")[0] if program.kind is StartKind.MODULE else program.name
    if "tensorrt_llm" in program.name or name == "trtllm-serve":
        count = 2 if words[1:2] == ["serve"] else 1
        return count + 1 if _is_model(words, count) else 0
    plain = program.kind is StartKind.PROGRAM or program.name in ("vllm", "lmdeploy")
    plain = plain or program.name.endswith((".cli", ".cli.main", ".cli.entrypoint"))
    said = " ".join(words[1:3])
    verbs = verbs_of(name) if plain else ()
    verb = next((each for each in verbs if f"{said} ".startswith(f"{each} ")), "")
    count = 1 + len(verb.split())
    return count + 1 if verb in _MODEL_FIRST and _is_model(words, count) else count


def _is_model(words: Sequence[str], at: int) -> bool:
    return at < len(words) and not words[at].startswith("-")


def _tail(words: Sequence[Arg], at: int) -> Place | None:
    """
    Return the place behind a word; where that is one of several that a variable brings, behind the
    last of those, unless that is an option which waits for its value.
    """
    while at + 1 < len(words) and words[at].tail is None and words[at].place is None:
        at += 1
    word = words[at]
    return None if word.text.startswith("-") and "=" not in word.text else word.tail
