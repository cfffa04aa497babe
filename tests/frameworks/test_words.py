"""What a real program leaves in its container's log when it ends at its cap says so."""

from pathlib import Path

import pytest

from gpufence.capped import Ending, Why, capped, given_of, is_silent, last_words
from gpufence.plan import read_plan
from simulator.wheels.catalog import WHEEL_SETS, WheelSet
from tests.frameworks.cases import HOOK, LIMIT_MIB, Case, is_chosen
from tests.frameworks.running import Leaf, inject, run

pytestmark = pytest.mark.frameworks

LINES, BYTES = 80, 2048
"""What a kubelet takes of the end of a log for a container's message."""

GROWING = "held = []\nwhile True:\n    held.append({})\n"
PROGRAMS = {
    "torch": "import torch\n"
    + GROWING.format("torch.empty(64 << 20, dtype=torch.uint8, device='cuda')"),
    "jax": "import jax, numpy\n"
    + GROWING.format("jax.device_put(numpy.empty(64 << 20, numpy.uint8)).block_until_ready()"),
    "tensorflow": "import tensorflow as tf\n"
    + GROWING.format("tf.raw_ops.Empty(shape=[64 << 20], dtype=tf.uint8, init=False)"),
    "cupy": "import cupy\n" + GROWING.format("cupy.cuda.alloc(64 << 20)"),
    "onnxruntime": "import sys\nsys.path.append({folder!r})\n"
    "from simulator.workload.real.allocators import OnnxRuntime\n"
    "session = OnnxRuntime(0)\n" + GROWING.format("session.take(64 << 20)"),
}
CASES = [
    pytest.param(wheels, limit, id=f"{wheels.name}, {'the driver' if limit else 'our cap'}")
    for wheels in WHEEL_SETS
    for limit in (0, LIMIT_MIB)
    if is_chosen(wheels.name) and (limit or wheels.framework != "onnxruntime")  # it has no cap
]


@pytest.mark.parametrize(("wheels", "limit"), CASES)
def test_the_words_of_an_end_at_the_cap_are_known(
    wheels: WheelSet, limit: int, tmp_path: Path
) -> None:
    """What is kept of its log tells that its cap, or the driver's limit, is why it ended."""
    settings = {"GPUFENCE_DRIVER_LIMITS": "on"} if limit else {}
    injected = inject(Case("ends", annotations=HOOK), tmp_path, settings)
    program = PROGRAMS[wheels.framework].replace("{folder!r}", repr(str(Path.cwd())))
    leaf = Leaf(limit) if limit else None
    outcome = run(wheels, tmp_path, ("-c", program), injected, leaf)
    message = "\n".join(outcome.said.splitlines()[-LINES:])[-BYTES:]
    given = given_of(read_plan(injected.plan).containers["trainer"])
    words = last_words(message)
    found = capped(Ending("trainer", outcome.code, out_of_memory=words), given)

    assert 1 == outcome.code, outcome.said
    assert found is not None, message
    assert (Why.CAPPED, True) == (found.why, found.certain), message
    assert not is_silent(message)
