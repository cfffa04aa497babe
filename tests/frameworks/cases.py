"""
What a pod may say, and how much of a card each framework then takes.

Every pod asks for 8 GiB of a card of 40 GiB, so that a framework is told 5734 MiB, or 0.14 of the
card. A program grows in pieces of 64 MiB until it is refused; what stands here is where that is.
"""

from dataclasses import dataclass, field
from typing import Any

from simulator.wheels.catalog import WHEEL_SETS, WheelSet

CARD = "A100-40"
LIMIT_GIB = 8
TOLD_MIB = 5734

ALL = 40000
"""The whole card but the context: no cap."""

ARENA = 38464
"""What TensorFlow takes of a card by itself."""

QUARTER_LESS = 30208
"""What JAX takes of a card by itself."""

OURS = 5632
OURS_IN_BYTES = 5696
"""
CuPy and TensorFlow's logical devices are told amounts, where the others are told a share of what
CUDA shows of the card.
"""

TWENTIETH = 1984
HOOK = {"gpufence.io/python-hook": "enabled"}
SAY_MORE = "import torch; torch.cuda.set_per_process_memory_fraction(1.0)"
SAY_LESS = "import torch; torch.cuda.set_per_process_memory_fraction(0.05)"


@dataclass(frozen=True)
class Case:
    """
    One pod. `held` is in MiB, by the name of the environment where versions differ.

    `user` are the pod's own variables, None is a pod that the webhook never saw. `asked` are more
    words for the probe. `warns` is what the webhook says of a cap that is lost.
    """

    name: str
    held: int | dict[str, int] = 0
    user: dict[str, str] | None = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    warns: str = ""

    def expected(self, wheels: WheelSet) -> int:
        return self.held if isinstance(self.held, int) else self.held[wheels.name]


NEWER = ("torch-2.15", "torch-2.10")
OLDER = ("torch-2.9", "torch-2.5")


def since_2_10(newer: int, older: int = ALL) -> dict[str, int]:
    return dict.fromkeys(NEWER, newer) | dict.fromkeys(OLDER, older)


ALLOC, CUDA_ALLOC = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
XLA, XLA_NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
XLA_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
HIDES = f"hides {ALLOC}"
IGNORES = f"ignores {XLA}"
ASYNC = "backend:cudaMallocAsync"
EXPANDABLE = "expandable_segments:True"

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
    """
    Each environment with each case of its framework, one environment after the other.
    """
    return [(one, case) for one in WHEEL_SETS for case in CASES[one.framework]]
