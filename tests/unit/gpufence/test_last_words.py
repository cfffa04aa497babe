"""What messages of ended containers say of GPU memory."""

import pytest

from gpufence.last_words import MOST_CHARACTERS, out_of_memory
from gpufence.quantity import GIB
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.frameworks.budget import Device, Shortage

TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 52.00 MiB. GPU 0 has a total"
TF = " with shape[1,2] and type float on /job:localhost/replica:0/task:0/device:"
JAX = "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Traceback (most recent call last):\n{TORCH}\n", "OutOfMemoryError"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", "CUDA out of memory"),
        ("RuntimeError: CUDA error: out of memory", "CUDA error: out of memory"),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8 bytes", "OutOfMemoryError"),
        (JAX, "RESOURCE_EXHAUSTED: Out of memory"),
        ("RESOURCE_EXHAUSTED: failed to allocate memory", "RESOURCE_EXHAUSTED: failed to allocate"),
        (f"OOM when allocating tensor{TF}GPU:0 by", f"OOM when allocating tensor{TF}GPU"),
        (f"OOM when allocating tensor{TF}CPU:0 by allocator cpu", ""),
        ("W Allocator (GPU_0_bfc) ran out of memory", "Allocator (GPU_0_bfc) ran out of memory"),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("CUDA error at: x.hpp: cudaErrorMemoryAllocation out", "cudaErrorMemoryAllocation"),
        ("device 0: cudaMalloc failed: out of memory", "cudaMalloc failed: out of memory"),
        ("CUDA failed with error out of memory", "CUDA failed with error out of memory"),
        ("ResourceExhaustedError:\n\nOut of memory error on GPU 0.", "Out of memory error on GPU"),
        ("ERROR: Out of GPU memory trying to allocate 1 GiB", "Out of GPU memory"),
        ("java.lang.OutOfMemoryError: Java heap space", ""),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node", ""),
        ("StatusCode.RESOURCE_EXHAUSTED: Received message larger than max", ""),
        ("Killed: out of memory", ""),
        ("", ""),
    ],
)
def test_only_the_memory_of_a_card_counts(message: str, expected: str) -> None:
    """Each framework's own words are known, and what others call the same is not taken for them."""
    assert expected == out_of_memory(message)


def test_only_the_end_is_read() -> None:
    """Of a message longer than any kubelet keeps the end counts."""
    assert "CUDA out of memory" == out_of_memory("x" * 2**20 + "CUDA out of memory")
    assert "" == out_of_memory("CUDA out of memory" + "x" * MOST_CHARACTERS)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("limit", [None, 2 * GIB])
def test_what_each_framework_says_is_known(framework: str, limit: int | None) -> None:
    """
    The words of every simulated framework are known, whether its cap or the card was too small.
    """
    shortage = Shortage(Device(0, 15 * GIB, GIB, (7, 5)), 2 * GIB, GIB, GIB, limit)

    assert out_of_memory(FRAMEWORKS[framework].complain(shortage))
