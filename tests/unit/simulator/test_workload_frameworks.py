"""What each framework makes of its environment, row by row as they were observed."""

import pytest

from gpufence.quantity import GIB, MIB
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.frameworks.budget import Budget, Decision, Device, Dies, OnCpu, Shortage

TOTAL = 16 * GIB
DEVICE = Device(0, TOTAL, TOTAL, (7, 5), TOTAL)
FRACTION = "per_process_memory_fraction"
NO_LIMIT = None


def decide(framework: str, **variables: str) -> Decision:
    return FRAMEWORKS[framework].decide(variables, DEVICE)


def limit(framework: str, **variables: str) -> int | None:
    decision = decide(framework, **variables)
    assert isinstance(decision, Budget)
    return decision.limit


def death(framework: str, **variables: str) -> Dies:
    decision = decide(framework, **variables)
    assert isinstance(decision, Dies)
    return decision


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (f"{FRACTION}:0.0641", None, int(TOTAL * 0.0641)),
        (None, f"{FRACTION}:0.25", TOTAL // 4),
        (f"{FRACTION}:0.25", "expandable_segments:True", NO_LIMIT),
        (f"{FRACTION}:0.25", "", NO_LIMIT),
        (f"{FRACTION}:0.25", f"{FRACTION}:0.5", TOTAL // 2),
        (f"expandable_segments:True,{FRACTION}:0.25", None, TOTAL // 4),
        (f"roundup_power2_divisions:[256:1,512:2],{FRACTION}:0.25", None, TOTAL // 4),
        (f"{FRACTION}:0", None, 0),
        (f"{FRACTION}:0.25xyz", None, TOTAL // 4),
        (f"{FRACTION}:.25", None, TOTAL // 4),
        (f"{FRACTION}:0.25,", None, TOTAL // 4),
        (f"{FRACTION}:0.5,{FRACTION}:0.25", None, TOTAL // 4),
        ("", None, NO_LIMIT),
        (None, None, NO_LIMIT),
    ],
)
def test_torch_reads_one_of_two_variables(
    new: str | None, old: str | None, expected: int | None
) -> None:
    """A set old name hides the new one; the last fraction counts."""
    names = {"PYTORCH_ALLOC_CONF": new, "PYTORCH_CUDA_ALLOC_CONF": old}
    variables = {name: value for name, value in names.items() if value is not None}

    assert expected == limit("torch", **variables)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (f"{FRACTION}:", 134, "terminate called"),
        (f"{FRACTION}:1.5", 1, "is invalid, set it in [0.0, 1.0]"),
        (f"{FRACTION}:-0.1", 1, "is invalid"),
        (f"{FRACTION}:abc", 1, "stod"),
        (f"{FRACTION}:$(GPU_FRACTION)", 1, "stod"),
        ("bogus:1", 1, "Unrecognized key 'bogus'"),
    ],
)
def test_torch_dies_of_what_it_cannot_read(text: str, code: int, words: str) -> None:
    """Bad values are exceptions; a missing one aborts the process while torch is imported."""
    dies = death("torch", PYTORCH_ALLOC_CONF=text)

    assert code == dies.code
    assert words in dies.message


def test_older_torch_ignores_the_new_name() -> None:
    """Up to 2.9 the new variable has no effect."""
    assert NO_LIMIT is limit("torch-2.9", PYTORCH_ALLOC_CONF=f"{FRACTION}:0.25")


def test_older_torch_throws_at_the_fraction() -> None:
    """Up to 2.9 the fraction in the old variable is an unknown option."""
    dies = death("torch-2.9", PYTORCH_CUDA_ALLOC_CONF=f"{FRACTION}:0.25")

    assert f"Unrecognized CachingAllocator option: {FRACTION}" in dies.message


OLD, NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, TOTAL * 3 // 4),
        ({OLD: "0.25"}, TOTAL // 4),
        ({OLD: " .25 "}, TOTAL // 4),
        ({NEW: "0.25"}, TOTAL // 4),
        ({OLD: "0.25", NEW: ""}, TOTAL // 4),
        ({OLD: "", NEW: "0.25"}, TOTAL // 4),
        ({OLD: "", NEW: ""}, TOTAL * 3 // 4),
        ({OLD: "0"}, 0),
        ({OLD: "-1"}, 0),
        ({OLD: "nan"}, 0),
        ({OLD: "1.5"}, TOTAL * 3 // 2),
        ({OLD: "0.25", "XLA_PYTHON_CLIENT_ALLOCATOR": "BFC"}, TOTAL // 4),
        ({OLD: "0.25", "XLA_PYTHON_CLIENT_ALLOCATOR": "vmm"}, TOTAL // 4),
        ({OLD: "0.25", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, NO_LIMIT),
        ({OLD: "0.25", "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}, NO_LIMIT),
        ({OLD: "0.25", "TF_FORCE_UNIFIED_MEMORY": "1"}, NO_LIMIT),
    ],
)
def test_jax_takes_a_fraction_of_the_total(variables: dict[str, str], expected: int | None) -> None:
    """Either name counts, an empty one is not set, and nothing checks the range."""
    assert expected == limit("jax", **variables)


@pytest.mark.parametrize(
    "variables",
    [
        {OLD: "0.25", NEW: "0.25"},
        {OLD: "abc"},
        {OLD: "$(GPU_FRACTION)"},
        {"XLA_PYTHON_CLIENT_ALLOCATOR": ""},
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "tcmalloc"},
    ],
)
def test_jax_goes_on_without_the_card(variables: dict[str, str]) -> None:
    """What JAX cannot read costs it the card, silently."""
    assert isinstance(decide("jax", **variables), OnCpu)


def test_jax_rounds_up_to_its_pages() -> None:
    """The limit is a multiple of 2 MiB, rounded up."""
    exact = int(TOTAL * 0.0641)
    rounded = limit("jax", XLA_PYTHON_CLIENT_MEM_FRACTION="0.0641")

    assert rounded is not None
    assert 0 == rounded % (2 * MIB)
    assert 0 <= rounded - exact < 2 * MIB + 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, TOTAL // 4),
        ("", TOTAL // 4),
        ("true", TOTAL // 4),
        ("FALSE", TOTAL // 4),
        ("false", 0),
        ("False", 0),
        ("0", 0),
    ],
)
def test_jax_preallocates_unless_told_not_to(text: str | None, expected: int) -> None:
    """Only false, False and 0 turn the arena off."""
    variables = {OLD: "0.25"} | ({} if text is None else {"XLA_PYTHON_CLIENT_PREALLOCATE": text})
    decision = decide("jax", **variables)

    assert isinstance(decision, Budget)
    assert expected == decision.arena


def test_jax_backs_off_from_what_is_not_free() -> None:
    """With less free than its share JAX takes smaller arenas until one fits; the limit stays."""
    crowded = Device(0, TOTAL, TOTAL // 2, (7, 5), TOTAL)
    decision = FRAMEWORKS["jax"].decide({}, crowded)

    assert isinstance(decision, Budget)
    assert TOTAL * 3 // 4 == decision.limit
    assert TOTAL * 4 // 10 < decision.arena <= TOTAL // 2


RESERVE, GROWTH = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_FORCE_GPU_ALLOW_GROWTH"


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
    decision = decide("tensorflow", **({} if text is None else {RESERVE: text}))

    assert isinstance(decision, Budget)
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
    ("text", "arena", "notes"),
    [("true", 0, 0), ("false", 1, 0), (None, 1, 0), ("True", 1, 1), ("1", 1, 1)],
)
def test_tensorflow_grows_only_when_told_exactly(text: str | None, arena: int, notes: int) -> None:
    """Only the literal true stops TensorFlow from taking everything at once."""
    decision = decide("tensorflow", **({} if text is None else {GROWTH: text}))

    assert isinstance(decision, Budget)
    assert arena * (decision.limit or 0) == decision.arena
    assert notes == len(decision.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, NO_LIMIT),
        ("1073741824", GIB),
        (" 1024 ", 1024),
        ("50%", TOTAL // 2),
        ("6.25%", TOTAL // 16),
        ("0", NO_LIMIT),
    ],
)
def test_cupy_reads_bytes_or_percent(text: str | None, expected: int | None) -> None:
    """CuPy's limit is a whole number of bytes or a percentage, zero is none."""
    variables = {} if text is None else {"CUPY_GPU_MEMORY_LIMIT": text}

    assert expected == limit("cupy", **variables)


@pytest.mark.parametrize("text", ["", "1Gi", "624M", "0.0641", "1e9", "%", "110%", "-1"])
def test_cupy_dies_of_anything_else(text: str) -> None:
    """What is neither is a ValueError at the first allocation."""
    assert death("cupy", CUPY_GPU_MEMORY_LIMIT=text).message.startswith("ValueError")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, NO_LIMIT),
        ("2048", 2 * GIB),
        ("", NO_LIMIT),
        ("abc", NO_LIMIT),
        ("512MB", 512 * MIB),
        ("0.5", NO_LIMIT),
        ("-1", (2**64 - 1) * MIB),
    ],
)
def test_paddle_reads_as_far_as_it_can(text: str | None, expected: int | None) -> None:
    """Paddle's flag is the number in front, in MiB; nothing readable is no limit."""
    variables = {} if text is None else {"FLAGS_gpu_memory_limit_mb": text}

    assert expected == limit("paddle", **variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, NO_LIMIT),
        ("624MiB", 624 * MIB),
        ("100M", 100_000_000),
        ("1024", 1024),
        ("25%", TOTAL // 4),
    ],
)
def test_julia_reads_units_both_ways(text: str | None, expected: int | None) -> None:
    """Julia's MiB are binary and its M decimal."""
    variables = {} if text is None else {"JULIA_CUDA_HARD_MEMORY_LIMIT": text}

    assert expected == limit("julia", **variables)


@pytest.mark.parametrize("text", ["", "lots", "MiB"])
def test_julia_dies_of_what_it_cannot_read(text: str) -> None:
    """Junk is an error when the package starts."""
    assert 1 == death("julia", JULIA_CUDA_HARD_MEMORY_LIMIT=text).code


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
