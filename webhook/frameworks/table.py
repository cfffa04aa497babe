"""
PURE. The variables by which frameworks can be told how much memory they may use, and the value of
each: ours, or the user's where that asks for less.

One row for each: how our value is written, and how the framework itself would read a user's. What
every one of them does, and how it misbehaves, is in docs/frameworks.md. A new framework is its
variable in gpufence/names.py, and a row here.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from gpufence.errors import shown
from gpufence.plan import Done, Setting, write_setting
from gpufence.quantity import MIB, write_mebibytes
from webhook.frameworks.figures import Base, Basis, Injecting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.frameworks.figures import CardFigures, ContainerFigures

_DECIMAL = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE](-?[0-9]))?\s*")
_WHOLE = re.compile(r"\s*([0-9]{1,20})\s*")
_PERCENT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,20})?)%\s*")
_JULIA = re.compile(r"\s*([0-9]{1,20})\s*([kKMGT]?)(i?)B?\s*")
_PYTORCH_FRACTION = re.compile(r"(?:^|,)\s*per_process_memory_fraction\s*:\s*([^,]*)")
_THOUSANDS = " KMGT"

FRACTION, BYTES, MEBIBYTES = "{0.fraction}", "{0.allowance_bytes}", "{0.allowance_mebibytes}"
"""How our own values are written, of the figures of a card."""


def read_fraction(text: str, _: int | None = None) -> Fraction | None:
    number = _DECIMAL.fullmatch(text)
    return Fraction(number[1]) * Fraction(10) ** int(number[2] or 0) if number else None


def _read_pytorch(text: str, _: int | None) -> Fraction | None:
    """Return the last fraction among PyTorch's options, which is the one that counts."""
    fractions = _PYTORCH_FRACTION.findall(text)
    return read_fraction(fractions[-1]) if fractions else None


def _beside_pytorch(user: str, ours: str) -> str:
    """Return the user's options with our fraction in place of any other, the rest as it was."""
    rest = _PYTORCH_FRACTION.sub("", user).strip(", ")
    return f"{rest},{ours}" if rest else ours


def _names_pytorch_fraction(text: str) -> bool:
    return _PYTORCH_FRACTION.search(text) is not None


def _read_bytes(text: str, card_bytes: int | None) -> Fraction | None:
    number = _WHOLE.fullmatch(text)
    return Fraction(int(number[1])) if number else _of_percent(text, card_bytes)


def _read_mebibytes(text: str, _: int | None) -> Fraction | None:
    number = _WHOLE.fullmatch(text)
    return Fraction(int(number[1]) * MIB) if number else None


def _read_julia(text: str, card_bytes: int | None) -> Fraction | None:
    number = _JULIA.fullmatch(text)
    if number is None:
        return _of_percent(text, card_bytes)
    power = _THOUSANDS.index(number[2].upper() or " ")
    return Fraction(int(number[1]) * (1024 if number[3] else 1000) ** power)


def _of_percent(text: str, card_bytes: int | None) -> Fraction | None:
    percent = _PERCENT.fullmatch(text)
    return Fraction(percent[1]) * card_bytes / 100 if percent and card_bytes is not None else None


class FrameworkRow(NamedTuple):
    """
    One variable. `form` is what the plan calls its way of writing, `ours` our own value with the
    figures left out, `basis` what it is reckoned from.

    `read` returns what a text asks for: a share of the card where `of_card` is set, else bytes;
    None for what the framework would choke on or ignore. `beside` puts our value beside whatever
    else the user's text says; `speaks` returns whether that says anything about memory. `of_torch`
    marks what counts for PyTorch's allocator. `left_free` is an amount that is not to be used. The
    reader of a `strict` row chokes on empty text. `base` is what it takes for the card where the
    driver holds the container.
    """

    env: str
    form: str
    ours: str
    read: Callable[[str, int | None], Fraction | None]
    basis: Basis = Basis.PLAIN
    beside: Callable[[str, str], str] | None = None
    of_card: bool = False
    of_torch: bool = False
    speaks: Callable[[str], bool] = bool
    left_free: bool = False
    strict: bool = False
    base: Base = Base.LIMIT

    def write(self, figures: CardFigures, user: str = "") -> str:
        """Return our own value, beside what of the user's text stays."""
        ours = self.ours.format(figures)
        return self.beside(user, ours) if user and self.beside else ours


class FixedRow(NamedTuple):
    """
    One variable with one value on every card; `yields` where the user's own goes first, `without`
    says what becomes of any other value.
    """

    env: str
    value: str
    yields: bool = False
    form: str = "fixed"
    without: str = "would take the whole card"


def fraction_row(
    env: str, basis: Basis = Basis.PLAIN, *, of_torch: bool = False, strict: bool = False
) -> FrameworkRow:
    form = "share" if basis is Basis.SHARE else "fraction"
    return FrameworkRow(
        *(env, form, FRACTION, read_fraction, basis),
        of_card=True,
        of_torch=of_torch,
        strict=strict,
    )


XLA = fraction_row(names.XLA_FRACTION)
XLA_NEW = fraction_row(names.XLA_NEW_FRACTION)
XLA_NEW_BLANK = FixedRow(names.XLA_NEW_FRACTION, "")  # both filled: JAX falls back to the CPU
TF_GROWTH = FixedRow(names.TF_GROWTH, "true")

TABLE: tuple[FrameworkRow | FixedRow, ...] = (
    FrameworkRow(
        names.PYTORCH_CONF,
        "pytorch",
        f"per_process_memory_fraction:{FRACTION}",
        _read_pytorch,
        beside=_beside_pytorch,
        of_card=True,
        of_torch=True,
        speaks=_names_pytorch_fraction,
        base=Base.NOTHING,
    ),
    XLA,
    XLA_NEW_BLANK,
    TF_GROWTH,
    FrameworkRow(names.CUPY_LIMIT, "bytes", BYTES, _read_bytes, base=Base.AMOUNT),
    FrameworkRow(names.PADDLE_LIMIT, "mebibytes", MEBIBYTES, _read_mebibytes, base=Base.AMOUNT),
    FrameworkRow(names.JULIA_LIMIT, "julia", f"{MEBIBYTES}MiB", _read_julia, base=Base.AMOUNT),
    FixedRow(names.CUDA_LOADING, "LAZY", yields=True),
    FrameworkRow(names.ENV_LIMIT_BYTES, "bytes", BYTES, _read_bytes, base=Base.AMOUNT),
    fraction_row(names.ENV_FRACTION, of_torch=True)._replace(base=Base.UNKNOWN),
    fraction_row(names.ENV_TF_FRACTION, Basis.TENSORFLOW),
)

GROWTH = (FixedRow(names.XLA_PREALLOCATE, "false"), TF_GROWTH)
"""What makes frameworks take memory only as they need it; the others do so by themselves."""


class Defeat(NamedTuple):
    """
    A variable that can take the effect from a cap: which of its values do, and what to say, where
    `cap` is set at all; empty where it does so with any.
    """

    defeats: Callable[[str], bool]
    sentence: str
    cap: str = ""


def _is_set(text: str) -> bool:
    return text not in {"", "0", "false", "no", "off"}


_ASYNC_BACKEND = re.compile(r"(?:^|,)\s*backend\s*:\s*cudamallocasync\s*(?:,|$)")

DEFEATS = {
    names.PYTORCH_CONF: Defeat(
        lambda text: _ASYNC_BACKEND.search(text) is not None,
        "chooses cudaMallocAsync, which keeps to no fraction; leave backend out, or enable "
        f"{names.PYTHON_HOOK}",
        names.PYTORCH_CONF,
    ),
    names.PYTORCH_CUDA_CONF: Defeat(
        lambda _: True,
        f"hides {names.PYTORCH_CONF}, so PyTorch >= 2.10 is not capped; use that name",
        names.PYTORCH_CONF,
    ),
    names.XLA_ALLOCATOR: Defeat(
        {"platform", "cuda_async"}.__contains__,
        f"{{}} ignores {names.XLA_FRACTION}; use default",
        names.XLA_FRACTION,
    ),
    names.TF_UNIFIED: Defeat(_is_set, "lifts every cap of JAX and TensorFlow; remove it"),
    names.TF_ALLOCATOR: Defeat(
        "cuda_malloc_async".__eq__, "cuda_malloc_async keeps to no cap; remove it"
    ),
    names.GGML_UNIFIED: Defeat(
        _is_set, "takes memory that cannot be attributed to the pod; remove it"
    ),
    names.VISIBLE_DEVICES: Defeat(
        lambda text: text not in {"", "none", "void"},
        "overrides the cards that the device plugin assigns; remove it",
    ),
}


_OF_PYTORCH = frozenset({names.PYTORCH_CONF, names.PYTORCH_CUDA_CONF})


def defeat(env: str, value: str | None, *, hook: bool) -> str:
    """
    Return how a variable of the user's defeats the cap; empty where it does not.

    `value` is None where it cannot be read. The start-up hook caps PyTorch past its own variables.
    """
    row = DEFEATS.get(env)
    text = (value or "").strip().lower()
    if row is None or (hook and env in _OF_PYTORCH) or not row.defeats(text):
        return ""
    return row.sentence.format(text)


class Value(NamedTuple):
    """
    A variable's value and how it came about.

    `readable` is False where the user's value is nothing the framework could act on.
    """

    text: str
    done: Done
    figures: CardFigures | None = None
    readable: bool = True


def value_for(
    row: FrameworkRow | FixedRow, figures: ContainerFigures, user: str | None
) -> Value | None:
    """
    Return a variable's value, or None where nothing can be written that its reader would bear.

    Without a card a fraction stays what the user wrote, or empty, which its readers take for unset.
    Readers of amounts choke on empty text, so without a limit there is no amount at all.
    """
    if isinstance(row, FixedRow):
        return _fixed(row, user)
    card = allowed(row, figures)
    if card is not None:
        return _smaller(row, card, user) if user else Value(row.write(card), Done.SET, card)
    if user:
        return Value(user, Done.KEPT)
    return Value("", Done.SET) if row.of_card and not row.strict else None


def allowed(row: FrameworkRow, figures: ContainerFigures) -> CardFigures | None:
    """Return the figures of the card on which a row's value is the smallest."""
    smallest = figures.by_basis[row.basis]
    if row.left_free:
        return smallest.rest
    return smallest.fraction if row.of_card else smallest.amount


def lowered(row: FrameworkRow | FixedRow, value: Value, user: str, *, label: str = "") -> str:
    """Return the sentence that says that ours counts and not what the user wrote."""
    summary = f"{label or row.env} {shown(user)}"
    figures = value.figures
    if figures is None and value.text:
        without = row.without if isinstance(row, FixedRow) else "is no cap"
        return f"{summary} {without}; {shown(value.text)} counts"
    if figures is None:
        return (
            f"{summary} is unknown to older JAX, and beside {names.XLA_FRACTION} sends a newer one"
            f" to the CPU; {names.XLA_FRACTION} alone counts, with the smaller of both values"
        )
    what = "is no cap" if "$" not in user else "is not known before it runs"
    what = "is too much" if value.readable else what
    if isinstance(row, FrameworkRow) and row.left_free and value.readable:
        what = "leaves too little free"
    return f"{summary} {what}; this pod may use {_basis(figures)}, so {value.text} counts"


def smaller_share(one: str | None, other: str) -> str:
    """
    Return which of a user's two texts for one share asks for less, as far as they can be read.
    """
    known = [(share, text) for text in (one, other) if text and (share := read_fraction(text))]
    return min(known)[1] if known else other


def _fixed(row: FixedRow, user: str | None) -> Value:
    if not user:
        return Value(row.value, Done.SET)
    if row.yields or user == row.value:
        return Value(user, Done.KEPT)
    return Value(row.value, Done.LOWERED)


def _smaller(row: FrameworkRow, figures: CardFigures, user: str) -> Value:
    if not row.speaks(user):
        return Value(row.write(figures, user), Done.SET, figures)
    asked = row.read(user, figures.card_bytes) or Fraction(0)
    allowed = figures.ratio if row.of_card else figures.allowance_bytes
    if 0 < asked <= allowed:
        return Value(user, Done.KEPT, figures)
    return Value(row.write(figures, user), Done.LOWERED, figures, readable=asked > 0)


def _basis(figures: CardFigures) -> str:
    limit = write_mebibytes(figures.limit_bytes)
    if figures.card_bytes is None or figures.driver:
        return limit
    return f"{limit} of {write_mebibytes(figures.card_bytes)}"


EnvEntry: TypeAlias = dict[str, object]
"""One variable as it stands in a container's `env`."""


def slot_name(env: str, number: int) -> str:
    """Name the slot of a variable in the container of a number, which no other of the pod has."""
    return f"{env}.{number}" if number else env


def read_slot(env: str, slot: str) -> EnvEntry:
    """Let a variable read its slot."""
    field = f"metadata.annotations['{names.ENV_PREFIX}{slot}']"
    return {"name": env, "valueFrom": {"fieldRef": {"fieldPath": field}}}


class BlankSettings(NamedTuple):
    """
    What every container is told that says nothing itself, with room for amounts in `values` and
    `settings`. Nothing in it is any pod's text.
    """

    entries: Mapping[str, EnvEntry]
    keys: tuple[str, ...]
    values: str
    settings: str


_PLACES = {(Basis.PLAIN, True): 0, (Basis.PLAIN, False): 1, (Basis.TENSORFLOW, True): 2}
"""Where the amounts stand from which a row of the table is reckoned."""


@lru_cache(maxsize=64)
def blank_settings(
    injecting: Injecting, number: int, known: tuple[bool, ...], *, idle: bool
) -> BlankSettings:
    """Write all but the amounts, of which those that are not `known` leave a value empty."""
    grown = GROWTH if injecting is Injecting.GROW else ()
    entries: dict[str, EnvEntry] = {}
    values, settings = [], []
    for row in dict.fromkeys((*grown, *(() if idle else TABLE))):
        text, amounts = "", None
        if isinstance(row, FixedRow):
            text = row.value
        elif known[at := _PLACES[row.basis, row.of_card]]:
            text, amounts = row.ours.replace("{0.", f"{{{at}."), f"%({at})s"
        elif not row.of_card:
            continue
        really = injecting is Injecting.SET or row in grown
        slot, done = (slot_name(row.env, number), Done.SET) if really else ("", Done.PLANNED)
        settings.append(write_setting(Setting(row.env, slot, row.form, done), amounts))
        if really:
            entries[row.env] = read_slot(row.env, slot)
            values.append(text)
    keys = tuple([f"{names.ENV_PREFIX}{slot_name(env, number)}" for env in entries])
    return BlankSettings(entries, keys, "\n".join(values), ",".join(settings))
