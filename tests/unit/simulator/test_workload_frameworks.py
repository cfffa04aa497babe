"""What each framework makes of its environment, row by row as they were observed."""

from collections.abc import Mapping

import pytest

from gpufence.quantity import GIB, MIB
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.frameworks.budget import Budget, Decision, Device, Dies, OnCpu, Shortage

TOTAL = 16 * GIB
DEVICE = Device(0, TOTAL, TOTAL, (7, 5), TOTAL)
FRACTION = "per_process_memory_fraction"
NO_LIMIT = None

OLD, NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
ALLOCATOR, AHEAD = "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE"
TORCH, TORCH_OLD = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
CUPY, PADDLE = "CUPY_GPU_MEMORY_LIMIT", "FLAGS_gpu_memory_limit_mb"
JULIA = "JULIA_CUDA_HARD_MEMORY_LIMIT"
RESERVE, GROWTH = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_FORCE_GPU_ALLOW_GROWTH"


def decide(framework: str, variables: Mapping[str, str]) -> Decision:
    return FRAMEWORKS[framework].decide(variables, DEVICE)


def budget(framework: str, variables: Mapping[str, str]) -> Budget:
    decision = decide(framework, variables)
    assert isinstance(decision, Budget)
    return decision


@pytest.mark.parametrize(
    ("framework", "variables", "expected"),
    [
        # A set old name hides the new one; the last fraction counts.
        ("torch", {TORCH: f"{FRACTION}:0.0641"}, int(TOTAL * 0.0641)),
        ("torch", {TORCH_OLD: f"{FRACTION}:0.25"}, TOTAL // 4),
        ("torch", {TORCH: f"{FRACTION}:0.25", TORCH_OLD: "expandable_segments:True"}, NO_LIMIT),
        ("torch", {TORCH: f"{FRACTION}:0.25", TORCH_OLD: ""}, NO_LIMIT),
        ("torch", {TORCH: f"{FRACTION}:0.25", TORCH_OLD: f"{FRACTION}:0.5"}, TOTAL // 2),
        ("torch", {TORCH: f"expandable_segments:True,{FRACTION}:0.25"}, TOTAL // 4),
        ("torch", {TORCH: f"roundup_power2_divisions:[256:1,512:2],{FRACTION}:0.25"}, TOTAL // 4),
        ("torch", {TORCH: f"{FRACTION}:0"}, 0),
        ("torch", {TORCH: f"{FRACTION}:0.25xyz"}, TOTAL // 4),
        ("torch", {TORCH: f"{FRACTION}:.25"}, TOTAL // 4),
        ("torch", {TORCH: f"{FRACTION}:0.25,"}, TOTAL // 4),
        ("torch", {TORCH: f"{FRACTION}:0.5,{FRACTION}:0.25"}, TOTAL // 4),
        ("torch", {TORCH: ""}, NO_LIMIT),
        ("torch", {}, NO_LIMIT),
        ("torch-2.9", {TORCH: f"{FRACTION}:0.25"}, NO_LIMIT),
        # Either name counts, an empty one is not set, and nothing checks the range.
        ("jax", {}, TOTAL * 3 // 4),
        ("jax", {OLD: "0.25"}, TOTAL // 4),
        ("jax", {OLD: " .25 "}, TOTAL // 4),
        ("jax", {NEW: "0.25"}, TOTAL // 4),
        ("jax", {OLD: "0.25", NEW: ""}, TOTAL // 4),
        ("jax", {OLD: "", NEW: "0.25"}, TOTAL // 4),
        ("jax", {OLD: "", NEW: ""}, TOTAL * 3 // 4),
        ("jax", {OLD: "0"}, 0),
        ("jax", {OLD: "-1"}, 0),
        ("jax", {OLD: "nan"}, 0),
        ("jax", {OLD: "1.5"}, TOTAL * 3 // 2),
        ("jax", {OLD: "0.25", ALLOCATOR: "BFC"}, TOTAL // 4),
        ("jax", {OLD: "0.25", ALLOCATOR: "vmm"}, TOTAL // 4),
        ("jax", {OLD: "0.25", ALLOCATOR: "platform"}, NO_LIMIT),
        ("jax", {OLD: "0.25", ALLOCATOR: "cuda_async"}, NO_LIMIT),
        ("jax", {OLD: "0.25", "TF_FORCE_UNIFIED_MEMORY": "1"}, NO_LIMIT),
        # A whole number of bytes or a percentage, zero is none.
        ("cupy", {}, NO_LIMIT),
        ("cupy", {CUPY: "1073741824"}, GIB),
        ("cupy", {CUPY: " 1024 "}, 1024),
        ("cupy", {CUPY: "50%"}, TOTAL // 2),
        ("cupy", {CUPY: "6.25%"}, TOTAL // 16),
        ("cupy", {CUPY: "0"}, NO_LIMIT),
        # The number in front, in MiB; nothing readable is no limit.
        ("paddle", {}, NO_LIMIT),
        ("paddle", {PADDLE: "2048"}, 2 * GIB),
        ("paddle", {PADDLE: ""}, NO_LIMIT),
        ("paddle", {PADDLE: "abc"}, NO_LIMIT),
        ("paddle", {PADDLE: "512MB"}, 512 * MIB),
        ("paddle", {PADDLE: "0.5"}, NO_LIMIT),
        ("paddle", {PADDLE: "-1"}, (2**64 - 1) * MIB),
        # MiB are binary, M decimal.
        ("julia", {}, NO_LIMIT),
        ("julia", {JULIA: "624MiB"}, 624 * MIB),
        ("julia", {JULIA: "100M"}, 100_000_000),
        ("julia", {JULIA: "1024"}, 1024),
        ("julia", {JULIA: "25%"}, TOTAL // 4),
    ],
)
def test_a_framework_reads_its_limit(
    framework: str, variables: dict[str, str], expected: int | None
) -> None:
    """What each framework takes for its limit."""
    assert expected == budget(framework, variables).limit


@pytest.mark.parametrize(
    ("framework", "variables", "code", "words"),
    [
        ("torch", {TORCH: f"{FRACTION}:"}, 134, "terminate called"),
        ("torch", {TORCH: f"{FRACTION}:1.5"}, 1, "is invalid, set it in [0.0, 1.0]"),
        ("torch", {TORCH: f"{FRACTION}:-0.1"}, 1, "is invalid"),
        ("torch", {TORCH: f"{FRACTION}:abc"}, 1, "stod"),
        ("torch", {TORCH: f"{FRACTION}:$(GPU_FRACTION)"}, 1, "stod"),
        ("torch", {TORCH: "bogus:1"}, 1, "Unrecognized key 'bogus'"),
        (
            *("torch-2.9", {TORCH_OLD: f"{FRACTION}:0.25"}),
            *(1, f"Unrecognized CachingAllocator option: {FRACTION}"),
        ),
        *(
            ("cupy", {CUPY: text}, 1, "ValueError")
            for text in ("", "1Gi", "624M", "0.0641", "1e9", "%", "110%", "-1")
        ),
        *(("julia", {JULIA: text}, 1, "") for text in ("", "lots", "MiB")),
    ],
)
def test_a_framework_dies_of_what_it_cannot_read(
    framework: str, variables: dict[str, str], code: int, words: str
) -> None:
    """Bad values are exceptions; one that is missing aborts PyTorch while it is imported."""
    dies = decide(framework, variables)

    assert isinstance(dies, Dies)
    assert code == dies.code
    assert words in dies.message


@pytest.mark.parametrize(
    "variables",
    [
        {OLD: "0.25", NEW: "0.25"},
        {OLD: "abc"},
        {OLD: "$(GPU_FRACTION)"},
        {ALLOCATOR: ""},
        {ALLOCATOR: "tcmalloc"},
    ],
)
def test_jax_goes_on_without_the_card(variables: dict[str, str]) -> None:
    """What JAX cannot read costs it the card, silently."""
    assert isinstance(decide("jax", variables), OnCpu)


def test_jax_rounds_up_to_its_pages() -> None:
    """The limit is a multiple of 2 MiB, rounded up."""
    exact = int(TOTAL * 0.0641)
    rounded = budget("jax", {OLD: "0.0641"}).limit

    assert rounded is not None
    assert 0 == rounded % (2 * MIB)
    assert 0 <= rounded - exact < 2 * MIB + 1024


@pytest.mark.parametrize(
    ("framework", "variables", "arena", "notes"),
    [
        *(
            ("jax", {OLD: "0.25"} | said, TOTAL // 4, 0)
            for said in ({}, {AHEAD: ""}, {AHEAD: "true"}, {AHEAD: "FALSE"})
        ),
        *(("jax", {OLD: "0.25", AHEAD: text}, 0, 0) for text in ("false", "False", "0")),
        ("tensorflow", {}, TOTAL - 1050 * MIB, 0),
        ("tensorflow", {GROWTH: "true"}, 0, 0),
        ("tensorflow", {GROWTH: "false"}, TOTAL - 1050 * MIB, 0),
        ("tensorflow", {GROWTH: "True"}, TOTAL - 1050 * MIB, 1),
        ("tensorflow", {GROWTH: "1"}, TOTAL - 1050 * MIB, 1),
    ],
)
def test_all_is_taken_at_once_unless_told_not_to(
    framework: str, variables: dict[str, str], arena: int, notes: int
) -> None:
    """Only false, False and 0 turn JAX's arena off, only the literal true TensorFlow's."""
    decision = budget(framework, variables)

    assert (arena, notes) == (decision.arena, len(decision.notes))


def test_jax_backs_off_from_what_is_not_free() -> None:
    """With less free than its share JAX takes smaller arenas until one fits; the limit stays."""
    crowded = Device(0, TOTAL, TOTAL // 2, (7, 5), TOTAL)
    decision = FRAMEWORKS["jax"].decide({}, crowded)

    assert isinstance(decision, Budget)
    assert TOTAL * 3 // 4 == decision.limit
    assert TOTAL * 4 // 10 < decision.arena <= TOTAL // 2


@pytest.mark.parametrize(
    ("text", "expected_mib", "notes"),
    [
        (None, 16384 - 1050, 0),
        ("4096", 16384 - 4096, 0),
        ("20000", 16384, 1),
        ("", 16384 - 1050, 1),
        ("-5", 16384 - 1050, 1),
        ("many", 16384 - 1050, 1),
    ],
)
def test_tensorflow_leaves_a_reserve(text: str | None, expected_mib: int, notes: int) -> None:
    """The reserve is ignored when unreadable and, what is worse, when larger than what is free."""
    decision = budget("tensorflow", {} if text is None else {RESERVE: text})

    assert expected_mib * MIB == decision.limit
    assert notes == len(decision.notes)


@pytest.mark.parametrize(
    ("free_mib", "major", "reserve_mib"),
    [(1024, 7, 225), (8192, 6, 500), (8192, 7, 1050), (8192, 8, 1536), (8192, 9, 1800)],
)
def test_tensorflow_knows_its_own_reserve(free_mib: int, major: int, reserve_mib: int) -> None:
    """Without a word from outside the reserve depends on the card."""
    decision = FRAMEWORKS["tensorflow"].decide(
        {}, Device(0, TOTAL, free_mib * MIB, (major, 0), TOTAL)
    )

    assert isinstance(decision, Budget)
    assert (free_mib - reserve_mib) * MIB == decision.limit


@pytest.mark.parametrize(
    ("framework", "words"),
    [
        ("torch", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("torch-2.9", "torch.OutOfMemoryError: CUDA out of memory."),
        ("jax", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes."),
        ("tensorflow", "ResourceExhaustedError: OOM when allocating 2147483648 bytes"),
        ("cupy", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 2,147,483,648 bytes"),
        ("paddle", "Out of memory error on GPU 0. Cannot allocate 2.00 GiB"),
        ("julia", "Out of GPU memory trying to allocate 2.00 GiB"),
        ("none", "CUDA error: out of memory"),
    ],
)
@pytest.mark.parametrize("cap", [None, 4 * GIB])
def test_each_framework_complains_in_its_own_words(
    framework: str, words: str, cap: int | None
) -> None:
    """Out of memory reads as users know it, whether the cap or the card was too small."""
    shortage = Shortage(DEVICE, 2 * GIB, 3 * GIB, 512, cap)

    assert words in FRAMEWORKS[framework].complain(shortage)
