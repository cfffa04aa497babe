"""
Kubernetes quantities as exact integers.

The API server rewrites what users type (`0.9Gi` becomes `966367641600m`), extended resources arrive
in every spelling Kubernetes accepts, and an enforcer that reads a malformed limit as zero or as "no
limit" is worse than none. So this reader accepts what `resource.ParseQuantity` accepts, counts in
integers only, and raises on everything else. It is stricter in two ways: text without any digit
(Kubernetes reads "Mi" as zero) and numbers or exponents of absurd length raise too.
"""

from __future__ import annotations

import math
import re

from gpufence.errors import InvalidError, Problem, described

KIB = 2**10
MIB = 2**20
GIB = 2**30

UNIT_BYTES = {"GiB": GIB, "MiB": MIB}
"""The units that gpushare's device plugin knows, as its option and our settings name them."""

NANO = 10**9
LARGEST = 2**63 - 1
"""What the API server itself can count to; anything above is nobody's memory."""

_MOST_DIGITS = 64
_PLAIN = re.compile("[0-9]{1,18}")
_LARGEST_EXPONENT = 40
_SHAPE = r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES = {0: "", **{bits: suffix for suffix, bits in _BINARY.items()}}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

_EXPECTED = "is not a Kubernetes quantity"
_REMEDY = "write a number with an optional suffix, such as 6Gi, 1500Mi or 3"


def read_nano(value: object, field: str) -> int:
    """
    Read any quantity as a count of billionths, the finest Kubernetes keeps; rounds up as it does.
    """
    text = _text(value)
    match = re.fullmatch(_SHAPE, text) if text is not None else None
    if match is None:
        raise _invalid(value, field)
    sign, whole, part, suffix = (group or "" for group in match.groups())
    if not whole and not part:
        raise _invalid(value, field)
    if len(whole) + len(part) > _MOST_DIGITS:
        raise _invalid(value, field, reason=f"has more than {_MOST_DIGITS} digits")
    numerator, denominator = _scale(value, field, suffix)
    divisor: int = denominator * 10 ** len(part)
    amount = -(-int(whole + part) * numerator * NANO // divisor)
    return -amount if sign == "-" else amount


def read_count(value: object, field: str) -> int:
    """
    Read a quantity that must be a whole number of at least zero, as extended resources are.

    The API server hands them out as plain digits, which need no more than `int`.
    """
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return int(value)
    amount, rest = divmod(_positive(value, field), NANO)
    if rest:
        raise _invalid(
            value, field, reason="is not a whole number", remedy="write a whole number of units"
        )
    return amount


def read_bytes(value: object, field: str) -> int:
    """
    Read an amount of memory in bytes, rounded down so that a limit never grows by reading it.

    Most people write whole numbers of a binary unit, which need no more than a shift, and programs
    plain bytes.
    """
    if isinstance(value, str) and value[-2:] in _BINARY:
        digits = value[:-2]
        amount = int(digits) << _BINARY[value[-2:]] if _PLAIN.fullmatch(digits) else LARGEST + 1
        if amount <= LARGEST:
            return amount
    elif isinstance(value, str) and _PLAIN.fullmatch(value):
        return int(value)
    return _positive(value, field) // NANO


def write_bytes(amount: int, *, largest: str = "Ei") -> str:
    """Render bytes in the largest binary unit, up to `largest`, that keeps them exact."""
    if not amount:
        return "0"
    zeros = (amount & -amount).bit_length() - 1
    bits = min(zeros // 10 * 10, _BINARY[largest])
    return f"{amount >> bits}{_SUFFIXES[bits]}"


def write_mebibytes(amount: int) -> str:
    """Render bytes as whole MiB, rounded down: for people, not for reading back."""
    return f"{amount // MIB}Mi"


def _positive(value: object, field: str) -> int:
    amount = read_nano(value, field)
    if amount < 0:
        raise _invalid(value, field, reason="is negative", remedy="write an amount above zero")
    if amount > LARGEST * NANO:
        raise _invalid(value, field, reason="is larger than Kubernetes can count")
    return amount


def _text(value: object) -> str | None:
    """
    Return the text of a quantity; manifests that no API server has seen may hold bare numbers.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) <= LARGEST:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str) else None


def _scale(value: object, field: str, suffix: str) -> tuple[int, int]:
    if suffix in _BINARY:
        return 1 << _BINARY[suffix], 1
    if suffix in _DECIMAL:
        exponent = _DECIMAL[suffix]
    elif len(suffix) > _MOST_DIGITS or abs(int(suffix[1:])) > _LARGEST_EXPONENT:
        raise _invalid(value, field, reason="has an exponent beyond anything Kubernetes can count")
    else:
        exponent = int(suffix[1:])
    return (10**exponent, 1) if exponent >= 0 else (1, 10**-exponent)


def _invalid(
    value: object, field: str, *, reason: str = _EXPECTED, remedy: str = _REMEDY
) -> InvalidError:
    return InvalidError(Problem(field, described(value), reason, remedy))
