"""
What messages of ended containers say of GPU memory.
"""

import pytest

from gpufence.last_words import MOST_CHARACTERS, out_of_memory

TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 52.00 MiB. GPU 0 has a total"
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
        ("OOM when allocating tensor with shape[1,2]", "OOM when allocating tensor"),
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
    """
    Each framework's own words are known, and what others call the same is not taken for them.
    """
    assert expected == out_of_memory(message)


def test_only_the_end_is_read() -> None:
    """
    Of a message longer than any kubelet keeps the end counts.
    """
    assert "CUDA out of memory" == out_of_memory("x" * 2**20 + "CUDA out of memory")
    assert "" == out_of_memory("CUDA out of memory" + "x" * MOST_CHARACTERS)
