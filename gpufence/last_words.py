"""
What a container's last words, its termination message, say of the memory of its card.

The kubelet takes them of a file or, where the pod asks for that, of the last lines of its log.
Only what frameworks say of a GPU counts: a Java heap, a host's memory and a quota of gRPC have
errors of the same names.
"""

from __future__ import annotations

import re
from typing import Final

MOST_CHARACTERS: Final = 16 * 1024
"""Several times what a kubelet keeps; the end counts."""

_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory"  # PyTorch
    r"|CUDA_ERROR_OUT_OF_MEMORY"  # the driver's name, in TensorFlow, JAX, Numba
    r"|cudaErrorMemoryAllocation"  # the runtime's, in RMM, CuPy
    r"|CUDA error: out of memory"
    r"|cudaMalloc failed: out of memory"  # llama.cpp
    r"|CUDA failed with error out of memory"  # CTranslate2
    r"|(?<!java\.lang\.)(?<!ray\.exceptions\.)OutOfMemoryError"  # PyTorch, CuPy
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|OOM|[Ff]ailed to allocate)"  # JAX, TensorFlow
    r"|OOM when allocating [^\n]{0,1000}device:GPU"  # TensorFlow; on its CPUs it says the same
    r"|Allocator \(GPU_\d+_bfc\) ran out of memory"
    r"|Out of memory error on GPU"  # PaddlePaddle
    r"|Out of GPU memory"  # CUDA.jl
)


def out_of_memory(message: str) -> str:
    """
    Return the words by which a message says that a card's memory was not enough; empty where none
    does.
    """
    found = _OUT_OF_MEMORY.search(message[-MOST_CHARACTERS:])
    return found[0] if found else ""
