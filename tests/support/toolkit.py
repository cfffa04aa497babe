"""Variables of containers, and what NVIDIA's hook of 1.20.1 makes of them."""

from dataclasses import dataclass

from gpufence.quantity import MIB
from simulator.nvml.layout import NO_LIMIT

REQUEST, LIMIT = "NVIDIA_GPU_MEMORY_REQUEST", "NVIDIA_GPU_MEMORY_LIMIT"


@dataclass(frozen=True)
class Row:
    """The variables of an OCI spec, and the limits that are set, or words of the failure."""

    id: str
    variables: tuple[str, ...]
    expected: tuple[int, int] | None = None
    words: str = ""


def both(request: str, limit: str) -> tuple[str, ...]:
    return (f"{REQUEST}={request}", f"{LIMIT}={limit}")


SUCCESSES = (
    Row("none", ("A=b",)),
    Row("both", both("0", "3072"), (0, 3072 * MIB)),
    Row("both, and reserved", both("1024", "3072"), (1024 * MIB, 3072 * MIB)),
    Row("only the limit", (f"{LIMIT}=3072",), (3072 * MIB, 3072 * MIB)),
    Row("only the request", (f"{REQUEST}=2048",), (2048 * MIB, NO_LIMIT)),
    Row("a limit of nothing", both("0", "0"), (0, 0)),
    Row("the limit twice", (*both("0", "3072"), f"{LIMIT}=4096"), (0, 3072 * MIB)),
    Row("all of the card", both("0", "15360"), (0, 15360 * MIB)),
    Row("zeroes in front", both("0", "003072"), (0, 3072 * MIB)),
)
FAILURES = (
    Row("both empty", both("", ""), words=f"failed to parse {REQUEST}"),
    Row("an empty limit", both("0", ""), words=f"failed to parse {LIMIT}"),
    Row("an empty request", both("", "3072"), words='parsing "": invalid syntax'),
    Row("only an empty limit", (f"{LIMIT}=",), words=f"failed to parse {LIMIT}"),
    Row("a quantity", both("0", "3Gi"), words='parsing "3Gi": invalid syntax'),
    Row("a sign", both("0", "+1"), words="invalid syntax"),
    Row("a blank", both("0", " 1"), words="invalid syntax"),
    Row("a fraction", both("0", "1.5"), words="invalid syntax"),
    Row(
        "a request above the limit",
        both("4000", "3000"),
        words="memory request (4000 MiB) exceeds memory limit (3000 MiB)",
    ),
    Row(
        "more than can be bytes",
        both("0", "17592186044416"),
        words="exceeds the maximum supported value of 17592186044415 MiB",
    ),
    Row("more than 64 bits", both("0", "18446744073709551616"), words="value out of range"),
)
