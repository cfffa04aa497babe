"""
Grow in pieces until the framework refuses, and say as one line of JSON where that was.

It is asked in JSON, too: `framework`; `first`, the MiB of an allocation ahead of the pieces;
`limit`, a cap of the program's own in MiB; `before` and
`between`, Python that runs ahead of the framework's import and behind it, as a user's would.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from simulator.workload.real.allocators import (
    ALLOCATORS,
    PIECE,
    Allocator,
    NoGpuError,
    OnnxRuntime,
    RefusedError,
    TensorFlow,
)

MOST_PIECES = 700
SIGN = "probe: "
"""What the line with the answer begins with: frameworks print lines of their own."""


def main() -> None:
    print(f"\n{SIGN}{json.dumps(probe(json.loads(sys.argv[1])))}", flush=True)


def probe(asked: dict[str, Any]) -> dict[str, Any]:
    """
    Answer with the version, the MiB held at the end, what was said then, and whether on a card.
    """
    answer: dict[str, Any] = {"version": "", "held": 0, "said": "", "gpu": True}
    exec(asked.get("before", ""), {})  # noqa: S102 - what a user's program does
    try:
        allocator = _allocator(asked["framework"], asked.get("limit"))
        answer["version"] = allocator.version
        exec(asked.get("between", ""), {})  # noqa: S102 - the same
        held: list[object] = []
        sizes = [asked["first"] << 20] if "first" in asked else []
        for size in [*sizes, *([PIECE] * MOST_PIECES)]:
            held.append(allocator.take(size))
            answer["held"] += size >> 20
    except RefusedError as refused:
        answer["said"] = str(refused)
    except NoGpuError as error:
        answer["said"], answer["gpu"] = str(error), False
    return answer


def _allocator(framework: str, limit: int | None) -> Allocator:
    if limit is not None and framework == "onnxruntime":
        return OnnxRuntime(0, limit << 20)
    allocator = ALLOCATORS[framework](0)
    if limit is not None and isinstance(allocator, TensorFlow):
        allocator.limit(limit)
    return allocator


if __name__ == "__main__":
    main()
