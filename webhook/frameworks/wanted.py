"""
PURE. What a user's own value of a variable asks for, read as the framework itself would read it.

None stands for a value that is no cap: text the framework would choke on or ignore, and zero, which
to most of them means "no limit". Such a value never wins over ours.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gpufence.plan import Form
from gpufence.quantity import MIB

_DECIMAL = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE](-?[0-9]))?\s*")
_WHOLE = re.compile(r"\s*([0-9]{1,20})\s*")
_PERCENT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,20})?)%\s*")
_JULIA = re.compile(r"\s*([0-9]{1,20})\s*([kKMGT]?)(i?)B?\s*")
_PYTORCH_FRACTION = re.compile(r"(?:^|,)\s*per_process_memory_fraction\s*:\s*([^,]*)")
_THOUSANDS = " KMGT"


def wanted(form: Form, text: str, card_bytes: int | None) -> Fraction | None:
    """
    Return what a value asks for: a share of the card, or bytes, by its form.
    """
    match form:
        case Form.FRACTION | Form.SHARE:
            found = _decimal(text)
        case Form.PYTORCH:
            found = _of_pytorch(text)
        case Form.MEBIBYTES:
            number = _WHOLE.fullmatch(text)
            found = Fraction(int(number[1]) * MIB) if number else None
        case Form.JULIA:
            found = _of_julia(text) or _of_percent(text, card_bytes)
        case _:
            number = _WHOLE.fullmatch(text)
            found = Fraction(int(number[1])) if number else _of_percent(text, card_bytes)
    return found if found is not None and found > 0 else None


def with_pytorch_fraction(text: str, fraction: str) -> str:
    """
    Return PyTorch's options with this fraction in place of any other, the rest as it was.
    """
    rest = _PYTORCH_FRACTION.sub("", text).strip(", ")
    return f"{rest},{ours(fraction)}" if rest else ours(fraction)


def names_pytorch_fraction(text: str) -> bool:
    return _PYTORCH_FRACTION.search(text) is not None


def ours(fraction: str) -> str:
    return f"per_process_memory_fraction:{fraction}"


def _decimal(text: str) -> Fraction | None:
    number = _DECIMAL.fullmatch(text)
    return Fraction(number[1]) * Fraction(10) ** int(number[2] or 0) if number else None


def _of_pytorch(text: str) -> Fraction | None:
    """
    Return the last fraction among PyTorch's options, which is the one that counts.
    """
    found = _PYTORCH_FRACTION.findall(text)
    return _decimal(found[-1]) if found else None


def _of_percent(text: str, card_bytes: int | None) -> Fraction | None:
    percent = _PERCENT.fullmatch(text)
    return Fraction(percent[1]) * card_bytes / 100 if percent and card_bytes is not None else None


def _of_julia(text: str) -> Fraction | None:
    number = _JULIA.fullmatch(text)
    if number is None:
        return None
    power = _THOUSANDS.index(number[2].upper() or " ")
    return Fraction(int(number[1]) * (1024 if number[3] else 1000) ** power)
