"""
PURE. The settings by which servers that plan the card's memory themselves can be told their share
(flags, variables of their own, variables that carry flags), and what a server's own arguments say
of them already.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.quantity import GIB, MIB
from webhook.frameworks.figures import Base, Basis
from webhook.frameworks.table import (
    BYTES,
    FRACTION,
    FrameworkRow,
    fraction_row,
    read_fraction,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.engines.argv import Arg, Place

_BYTES = re.compile(r"\s*([0-9]{1,20})(?:\.([0-9]{1,9}))?\s*([kKmMgGtT]?)(i?)[bB]?\s*")
_AMOUNTS = re.compile(r"\s*([0-9]{1,12})(?:\s*,\s*[0-9]{1,12}){0,31}\s*")
_THOUSANDS = " KMGT"


class Lever(NamedTuple):
    """
    A server's own memory flag.

    `flags` are its spellings, the first of which is ours; with a `key`, its value begins so. `row`
    says what it may be set to. `default` is the share of the card that the server takes without it,
    None where it takes what it needs. `keeps_first` marks servers for which the first of two values
    counts, `bare` images that have no arguments of their own. Where `appends` is False the flag is
    only ever changed where it stands. `beside` is a flag without which it is refused, `least` the
    shortest of its beginnings that the server takes for it, `files` are flags that name a file in
    which it may stand. `outranks` are flags and variables with the last word over it, whatever it
    says, each with what it is called there.
    """

    flags: tuple[str, ...]
    row: FrameworkRow
    default: Fraction | None = None
    key: str = ""
    keeps_first: bool = False
    bare: bool = False
    appends: bool = True
    beside: str = ""
    least: str = ""
    files: tuple[str, ...] = ()
    outranks: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The flag as people name it."""
        return f"{self.flags[0]} {self.key.rstrip('=')}" if self.key else self.flags[0]

    @property
    def argument(self) -> str:
        """The argument of ours, which the kubelet expands when it starts the container."""
        return f"{self.flags[0]}={self.key}$({self.row.env})"

    def written(self, value: str) -> str:
        """Return the flag with a value as a person would write it."""
        return f"{self.flags[0]} {self.key}{value}"


def _flag(*flags: str, basis: Basis = Basis.PLAIN, default: str = "", bare: bool = False) -> Lever:
    row = fraction_row(names.ENV_SERVER, basis)
    return Lever(flags, row, Fraction(default) if default else None, bare=bare)


_CONFIG = ("--config",)
_STAGES = "engine_args.gpu_memory_utilization of each stage"
_CACHE = "kv_cache_config.free_gpu_memory_fraction"
VLLM = _flag("--gpu-memory-utilization", basis=Basis.SERVER, default="0.92")._replace(
    least="--gpu-m",
    files=_CONFIG,
    outranks=(
        ("--kaito-config-file", "vllm.gpu-memory-utilization"),
        *((flag, _STAGES) for flag in ("--omni", "--stage-configs-path", "--deploy-config")),
    ),
)
VLLM_BEFORE_0_20 = VLLM._replace(default=Fraction("0.9"))
SGLANG = _flag("--mem-fraction-static", default="0.8")._replace(
    row=fraction_row(names.ENV_SERVER)._replace(base=Base.UNKNOWN), least="--mem-f", files=_CONFIG
)
TGI = Lever(
    ("--cuda-memory-fraction",),
    fraction_row(names.TGI_FRACTION, strict=True)._replace(base=Base.UNKNOWN),
    appends=False,
)
DJL, RUNPOD = (
    Lever((env,), fraction_row(env, Basis.SERVER, strict=True), appends=False)
    for env in (names.DJL_FRACTION, names.RUNPOD_FRACTION)
)
TENSORRT_LLM = _flag(
    *("--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction"), default="0.9"
)._replace(
    outranks=tuple(
        (flag, _CACHE) for flag in ("--extra-llm-api-options", "--extra-llm-api-config", "--config")
    )
)
DYNAMO_TENSORRT_LLM = Lever(
    ("--free-gpu-memory-fraction",),
    fraction_row(names.DYNAMO_FRACTION, strict=True),
    appends=False,
    outranks=tuple(
        (name, _CACHE)
        for name in (
            *("--override-engine-args", "--extra-engine-args"),
            *("DYN_TRTLLM_OVERRIDE_ENGINE_ARGS", "DYN_TRTLLM_EXTRA_ENGINE_ARGS"),
        )
    ),
)
TF_SERVING = _flag(
    "--per_process_gpu_memory_fraction", basis=Basis.TENSORFLOW, default="0.9", bare=True
)
TRITON_TENSORFLOW = Lever(
    ("--backend-config",),
    fraction_row(names.ENV_SERVER, Basis.TENSORFLOW),
    key="tensorflow,gpu-memory-fraction=",
    keeps_first=True,
)
LMDEPLOY = _flag("--cache-max-entry-count", default="0.8")._replace(least="--cache-m")
SPARK = Lever(
    ("--conf", "-c"),
    fraction_row(names.ENV_SERVER),
    key="spark.rapids.memory.gpu.maxAllocFraction=",
    appends=False,
)


def _read_bytes(text: str, card_bytes: int | None) -> Fraction | None:
    """Read an amount as RAPIDS does: bytes, with a unit, or a share of the card."""
    number = _BYTES.fullmatch(text)
    if number is None:
        return None
    value = Fraction(f"{number[1]}.{number[2] or 0}")
    if number[2] and not number[3] and value <= 1:
        return None if card_bytes is None else value * card_bytes
    power = _THOUSANDS.index(number[3].upper() or " ")
    return value * Fraction(1024 if number[4] else 1000) ** power


DASK_CUDA = Lever(
    ("--rmm-maximum-pool-size",),
    FrameworkRow(names.ENV_SERVER_MEMORY, "bytes", BYTES, _read_bytes, base=Base.AMOUNT),
    beside="--rmm-pool-size",
)


def _left_row(env: str, form: str, ours: str, unit: int) -> FrameworkRow:
    """Make the row of a variable that says how much of the card to leave free, in whole units."""

    def read(text: str, card_bytes: int | None) -> Fraction | None:
        number = _AMOUNTS.fullmatch(text)
        if number is None or card_bytes is None:
            return None
        least = min(map(int, text.split(",")))
        return Fraction(max(card_bytes - least * unit, 1))  # nothing left to use is no whole card

    return FrameworkRow(env, form, ours, read, left_free=True, strict=True)


def _read_gibibytes_left(text: str, card_bytes: int | None) -> Fraction | None:
    left = read_fraction(text)
    return None if left is None or card_bytes is None else max(card_bytes - left * GIB, Fraction(1))


OLLAMA_OVERHEAD = _left_row(names.OLLAMA_OVERHEAD, "left-bytes", "{0.rest_bytes}", 1)._replace(
    base=Base.UNKNOWN
)
LLAMA_FIT = _left_row(names.LLAMA_FIT, "left-mebibytes", "{0.rest_mebibytes}", MIB)
LLAMA = Lever(("--fit-target", "-fitt"), LLAMA_FIT, appends=False)
COMFYUI = Lever(
    ("--reserve-vram",),
    FrameworkRow(
        *(names.ENV_SERVER_MEMORY, "left-gibibytes", "{0.rest_gibibytes}", _read_gibibytes_left),
        left_free=True,
    ),
)


def carrier_row(env: str, lever: Lever) -> FrameworkRow:
    """Make the row of a variable that carries a server's arguments, its memory flag among them."""
    value = lever.row
    loose = re.escape(lever.flags[0]).replace(r"\-", "[-_]")
    flag = re.compile(rf"(?:^|(?<=\s)){loose}(?:=|\s+)(['\"]?)([^\s'\"]*)\1(?=\s|$)")

    def read(text: str, card_bytes: int | None) -> Fraction | None:
        found = flag.findall(text)
        return value.read(found[-1][1], card_bytes) if found else None

    def beside(user: str, ours: str) -> str:
        rest = flag.sub("", user).strip()
        return f"{rest} {ours}" if rest else ours

    def speaks(text: str) -> bool:
        return flag.search(text) is not None

    return FrameworkRow(
        *(env, "arguments", f"{lever.flags[0]}={value.ours}", read, value.basis, beside),
        of_card=value.of_card,
        speaks=speaks,
        left_free=value.left_free,
        strict=True,
        base=value.base,
    )


VLLM_ARGS = carrier_row(names.VLLM_ARGS, VLLM)
COMFYUI_ARGS = carrier_row(names.COMFYUI_ARGS, COMFYUI)
NIM_ARGS = carrier_row(names.NIM_ARGS, VLLM)
NIM_SGLANG_ARGS = carrier_row(names.NIM_ARGS, SGLANG)
NIM_CACHE = FrameworkRow(
    *(names.NIM_CACHE, "fraction", FRACTION, read_fraction, Basis.SERVER),
    of_card=True,
    strict=True,
)


_ARGUMENTS = re.compile(
    r"-+\$.*|\$(?:[@*]|\{[@*]\}|\{\w+\[[@*]\]\}"
    r"|\{?\w*(?:ARG|ARGS|ARGUMENTS|FLAGS|OPTIONS|OPTS|PARAMS)\}?)",
    re.IGNORECASE | re.DOTALL,
)
"""What a shell may put any argument in the place of."""
_LONGEST_SHOWN = 120
_OTHER_KEYS = re.compile(r"kv_cache|free_gpu|\$")
_CHOOSES = frozenset(("", "auto", "-1", "on"))


class Told(NamedTuple):
    """
    A flag's value as the user wrote it, and where; no place where it cannot be changed. `sure` is
    False where a script may leave the flag out.
    """

    text: str
    place: Place | None
    sure: bool = True


def told(lever: Lever, args: Sequence[Arg]) -> Told | None:
    """Return the value that counts among a server's arguments; None where there is none."""
    values = list(_values(lever, args))
    if not values:
        return None
    return values[0] if lever.keeps_first else values[-1]


def is_certain(flag: Told | None) -> bool:
    return flag is None or flag.sure


def has_flag(flag: str, args: Sequence[Arg]) -> bool:
    return any(_option(arg.text) == flag for arg in args)


def overriding(void: Sequence[str], args: Sequence[Arg], variables: Mapping[str, str]) -> str:
    """
    Return the first of some flags and variables that is given with a value by which the server does
    not choose itself, as it is written; empty where there is none.
    """
    for name in void:
        if variables.get(name, "") not in _CHOOSES:
            return f"{name}={variables[name]}"[:_LONGEST_SHOWN]
        for value in _given(name, args):
            if value not in _CHOOSES:
                return f"{name} {value}"[:_LONGEST_SHOWN]
    return ""


class Overriding(NamedTuple):
    """What has the last word over a server's flag, as it is written, and the key in it."""

    written: str
    key: str


def outranking(
    lever: Lever, args: Sequence[Arg], variables: Mapping[str, str]
) -> Overriding | None:
    """Return what of a server's arguments and variables outranks its flag; None for nothing."""
    for name, key in lever.outranks:
        if variables.get(name):
            return Overriding(f"{name}={variables[name]}"[:_LONGEST_SHOWN], key)
        for value in _given(name, args):
            if not (value.startswith("{") and _OTHER_KEYS.search(value) is None):
                written = f"{name} {value}".strip()[:_LONGEST_SHOWN]
                return Overriding(written, key)
    return None


def _given(name: str, args: Sequence[Arg]) -> Iterator[str]:
    """Yield the values that one flag is given."""
    wanted = name.replace("_", "-")
    for at, arg in enumerate(args):
        if arg.text.startswith("-") and _option(arg.text) == wanted:
            _, equals, value = arg.text.partition("=")
            if not equals and at + 1 < len(args) and not args[at + 1].text.startswith("--"):
                value = args[at + 1].text
            yield value


def unseen(lever: Lever, args: Sequence[Arg]) -> str:
    """Return what among a server's arguments may hold its flag where nobody can look into it."""
    for arg in args:
        if not arg.exact and _ARGUMENTS.fullmatch(arg.text):
            return arg.text
        if arg.text.startswith("--") and _option(arg.text) in lever.files:
            return arg.text.partition("=")[0]
    return ""


def _is_flag(lever: Lever, option: str) -> bool:
    name = _option(option)
    if name in map(_option, lever.flags):
        return True
    begun = bool(lever.least) and name.startswith(lever.least)
    return begun and lever.flags[0].startswith(name)


def _values(lever: Lever, args: Sequence[Arg]) -> Iterator[Told]:
    for at, arg in enumerate(args):
        option, equals, value = arg.text.partition("=")
        if not option.startswith("-") or not _is_flag(lever, option):
            continue
        skipped = len(option) + 1
        if not equals:
            if at + 1 == len(args) or args[at + 1].text.startswith("--"):
                continue
            arg, value, skipped = args[at + 1], args[at + 1].text, 0  # noqa: PLW2901 - its value
        if value.startswith(lever.key):
            skipped += len(lever.key)
            place = arg.after(skipped) if skipped else arg.place
            yield Told(value[len(lever.key) :], place, arg.sure)


def _option(text: str) -> str:
    """Return an option's name as parsers compare it: some take underscores for dashes."""
    return text.partition("=")[0].replace("_", "-")
