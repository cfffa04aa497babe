"""
What a pod may say, and how much of a card each framework then takes.

Every pod asks for 8 GiB of a card of 40 GiB, so that a framework is told 5734 MiB, or 0.14 of the
card. A program grows in pieces of 64 MiB until it is refused; what stands here is where that is.
"""

import os
from dataclasses import dataclass, field
from typing import Any

from simulator.wheels.catalog import WHEEL_SETS, WheelSet, find_wheels

CARD = "A100-40"
LIMIT_GIB = 8
LIMIT_MIB = LIMIT_GIB << 10
TOLD_MIB = 5734

ALL = 40000
"""The whole card but the context: no cap."""

ARENA = 38464
"""What TensorFlow takes of a card by itself."""

QUARTER_LESS = 30208
"""What JAX takes of a card by itself."""

OF_A_LIMIT = {"jax": LIMIT_MIB * 3 // 4, "tensorflow": LIMIT_MIB - 300 - 1536}
"""All that a framework takes of a driver's limit: JAX 3/4, TensorFlow what is free but 1536 MiB."""

OURS = 5632
OURS_IN_BYTES = 5696
"""CuPy and TensorFlow's logical devices get amounts, the others a share of what CUDA shows."""

TWENTIETH = 1984
HOOK = {"gpufence.io/python-hook": "enabled"}
SAY_MORE = "import torch; torch.cuda.set_per_process_memory_fraction(1.0)"
SAY_LESS = "import torch; torch.cuda.set_per_process_memory_fraction(0.05)"


@dataclass(frozen=True)
class Case:
    """
    One pod. `held` is in MiB, by the name of the environment where versions differ.

    `user` are the pod's own variables, None is a pod that the webhook never saw. `asked` are more
    words for the probe. `warns` is what the webhook says of a cap that is lost. `alone` is what a
    framework makes of the variables by itself, and `instead` what it says where it does not start,
    or goes on without the card.
    """

    name: str
    held: int | dict[str, int] = 0
    user: dict[str, str] | None = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    warns: str = ""
    alone: bool = False
    instead: str | dict[str, str] = ""

    def expected(self, wheels: WheelSet) -> int:
        return self.held if isinstance(self.held, int) else self.held[wheels.name]

    def said_instead(self, wheels: WheelSet) -> str:
        return self.instead if isinstance(self.instead, str) else self.instead[wheels.name]


def alone(
    held: int | dict[str, int] = 0, instead: str | dict[str, str] = "", **variables: str
) -> Case:
    """Ask a framework what it makes of a value, with no webhook in between."""
    text = ", ".join(f"`{name}={value}`" for name, value in variables.items())
    return Case(f"alone: {text}", held, variables, alone=True, instead=instead)


NEWER = ("torch-2.15", "torch-2.10")
OLDER = ("torch-2.9", "torch-2.5")


def since_2_10(newer: int, older: int = ALL) -> dict[str, int]:
    return dict.fromkeys(NEWER, newer) | dict.fromkeys(OLDER, older)


def says_since_2_10(newer: str, older: str = "") -> dict[str, str]:
    return dict.fromkeys(NEWER, newer) | dict.fromkeys(OLDER, older)


ALLOC, CUDA_ALLOC = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
XLA, XLA_NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
XLA_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
HIDES = f"hides {ALLOC}"
IGNORES = f"ignores {XLA}"
ASYNC = "backend:cudaMallocAsync"
EXPANDABLE = "expandable_segments:True"
FRACTION = "per_process_memory_fraction:{}"
UNRECOGNIZED = "RuntimeError: Unrecognized CachingAllocator option: per_process_memory_fraction"
NO_VALUE = "Index out of bounds in ConfigTokenizer"

TORCH = (
    Case("without gpufence", ALL, user=None),
    Case("as injected", since_2_10(OURS)),
    Case("as injected, with the start-up hook", OURS, annotations=HOOK),
    Case(f"`{ALLOC}={EXPANDABLE}`", since_2_10(OURS), {ALLOC: EXPANDABLE}),
    Case(
        "a smaller fraction of the user's own",
        since_2_10(TWENTIETH),
        {ALLOC: "per_process_memory_fraction:0.05"},
    ),
    Case(
        "a larger fraction of the user's own",
        since_2_10(OURS),
        {ALLOC: "per_process_memory_fraction:0.5"},
    ),
    Case(
        "a fraction that is no number",
        since_2_10(OURS),
        {ALLOC: "per_process_memory_fraction:lots"},
    ),
    Case(f"`{ALLOC}={ASYNC}`", ALL, {ALLOC: ASYNC}, warns="cudaMallocAsync"),
    Case(f"`{ALLOC}={ASYNC}`, with the start-up hook", OURS, {ALLOC: ASYNC}, HOOK),
    Case(f"`{CUDA_ALLOC}={EXPANDABLE}`", ALL, {CUDA_ALLOC: EXPANDABLE}, warns=HIDES),
    Case(
        f"`{CUDA_ALLOC}={EXPANDABLE}`, with the start-up hook",
        OURS,
        {CUDA_ALLOC: EXPANDABLE},
        HOOK,
    ),
    Case(f"`{CUDA_ALLOC}=`, which is empty", ALL, {CUDA_ALLOC: ""}, warns=HIDES),
    Case("a program that asks for less", TWENTIETH, asked={"between": SAY_LESS}),
    Case("a program that asks for all", ALL, asked={"between": SAY_MORE}),
    Case(
        "a program that asks for all, with the start-up hook",
        OURS,
        annotations=HOOK,
        asked={"between": SAY_MORE},
    ),
    alone(since_2_10(TWENTIETH), PYTORCH_ALLOC_CONF=FRACTION.format("0.05")),
    alone(
        since_2_10(TWENTIETH, 0),
        says_since_2_10("", UNRECOGNIZED),
        PYTORCH_CUDA_ALLOC_CONF=FRACTION.format("0.05"),
    ),
    alone(
        since_2_10(8064, 0),
        says_since_2_10("", UNRECOGNIZED),
        PYTORCH_ALLOC_CONF=FRACTION.format("0.05"),
        PYTORCH_CUDA_ALLOC_CONF=FRACTION.format("0.20"),
    ),
    alone(
        since_2_10(0),
        says_since_2_10("ValueError: per_process_memory_fraction is invalid"),
        PYTORCH_ALLOC_CONF=FRACTION.format("1.5"),
    ),
    alone(
        since_2_10(0),
        says_since_2_10("ValueError: Unrecognized key 'lots'"),
        PYTORCH_ALLOC_CONF="lots:1",
    ),
    alone(
        {**since_2_10(0), "torch-2.9": ALL},  # 2.9 only reads it as it ends
        {**says_since_2_10(NO_VALUE), "torch-2.9": NO_VALUE},
        PYTORCH_ALLOC_CONF=FRACTION.format(""),
    ),
)

JAX = (
    Case("without gpufence", QUARTER_LESS, user=None),
    Case("as injected", OURS),
    Case("`XLA_PYTHON_CLIENT_PREALLOCATE=false`", OURS, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    Case(f"`{XLA}=0.05`", TWENTIETH, {XLA: "0.05"}),
    Case(f"`{XLA}=0.9`", OURS, {XLA: "0.9"}),
    Case(f"`{XLA}=14%`", OURS, {XLA: "14%"}),
    Case(f"`{XLA_NEW}=0.9`", OURS, {XLA_NEW: "0.9"}),
    Case(f"`{XLA_NEW}=0.05`", TWENTIETH, {XLA_NEW: "0.05"}),
    Case("both names", OURS, {XLA: "0.9", XLA_NEW: "0.9"}),
    Case(
        f"`{XLA_ALLOCATOR}=platform`",
        {"jax-0.10": 39936, "jax-0.4.23": ALL},
        {XLA_ALLOCATOR: "platform"},
        warns=IGNORES,
    ),
    Case(f"`{XLA_ALLOCATOR}=cuda_async`", ALL, {XLA_ALLOCATOR: "cuda_async"}, warns=IGNORES),
    Case(
        "`TF_FORCE_UNIFIED_MEMORY=1`",
        40320,  # managed memory is charged to nobody, and ends only with the card
        {"TF_FORCE_UNIFIED_MEMORY": "1"},
        warns="lifts every cap",
    ),
    alone(OURS, XLA_PYTHON_CLIENT_MEM_FRACTION="0.14"),
    alone({"jax-0.10": OURS, "jax-0.4.23": QUARTER_LESS}, XLA_CLIENT_MEM_FRACTION="0.14"),
    alone(
        {"jax-0.10": 0, "jax-0.4.23": OURS},
        {
            "jax-0.10": "ValueError: XLA_CLIENT_MEM_FRACTION is specified together with",
            "jax-0.4.23": "",
        },
        XLA_PYTHON_CLIENT_MEM_FRACTION="0.14",
        XLA_CLIENT_MEM_FRACTION="0.14",
    ),
    alone(
        0,
        "ValueError: could not convert string to float: '14%'",
        XLA_PYTHON_CLIENT_MEM_FRACTION="14%",
    ),
)

TENSORFLOW = (
    Case("without gpufence", ARENA, user=None),
    Case("as injected: it grows, without a cap", ARENA),
    Case("as injected, with the start-up hook", OURS, annotations=HOOK),
    Case("a program that limits itself to 2048 MiB", TWENTIETH, asked={"limit": 2048}),
    Case(
        "a program that limits itself to 20000 MiB, with the start-up hook",
        OURS_IN_BYTES,
        annotations=HOOK,
        asked={"limit": 20000},
    ),
    Case(
        "`TF_GPU_ALLOCATOR=cuda_malloc_async`, with the start-up hook",
        ALL,
        {"TF_GPU_ALLOCATOR": "cuda_malloc_async"},
        HOOK,
        warns="cuda_malloc_async keeps to no cap",
    ),
)

CUPY = (
    Case("without gpufence", ALL, user=None),
    Case("as injected", OURS_IN_BYTES),
    Case("`CUPY_GPU_MEMORY_LIMIT=2147483648`", 2048, {"CUPY_GPU_MEMORY_LIMIT": "2147483648"}),
    Case("`CUPY_GPU_MEMORY_LIMIT=5%`", TWENTIETH, {"CUPY_GPU_MEMORY_LIMIT": "5%"}),
    Case("`CUPY_GPU_MEMORY_LIMIT=2GiB`", OURS_IN_BYTES, {"CUPY_GPU_MEMORY_LIMIT": "2GiB"}),
    alone(
        0,
        "ValueError: invalid literal for int() with base 10: '2GiB'",
        CUPY_GPU_MEMORY_LIMIT="2GiB",
    ),
)

ONNX_RUNTIME = (
    Case("without gpufence", 39936, user=None),
    Case("as injected: it reads no variable", 39936),
    Case("a program with `gpu_mem_limit` of 2048 MiB", 2048, asked={"limit": 2048}),
)

CASES: dict[str, tuple[Case, ...]] = {
    "torch": TORCH,
    "jax": JAX,
    "tensorflow": TENSORFLOW,
    "cupy": CUPY,
    "onnxruntime": ONNX_RUNTIME,
}


def every_case() -> list[tuple[WheelSet, Case]]:
    """Each environment with each case of its framework, one environment after the other."""
    return [(one, case) for one in WHEEL_SETS for case in CASES[one.framework]]


VARIABLE = "GPUFENCE_FRAMEWORKS_ONLY"


def is_chosen(name: str) -> bool:
    only = {find_wheels(one).name for one in os.environ.get(VARIABLE, "").split()}
    return not only or name in only
