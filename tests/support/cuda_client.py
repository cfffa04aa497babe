"""The asking side of `cuda_child`: what a test says to a program that uses the simulated driver."""

from collections.abc import Mapping
from pathlib import Path

from simulator.cuda.build import environment
from tests.support.nvml_client import Client, start_child

CUDA = 13


class CudaProgram(Client):
    """A program of the driver. Calling it evaluates an expression with `cuda_child`'s names."""

    def __init__(
        self,
        state: Path,
        *,
        cuda: int = CUDA,
        device: int | None = 0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        seen = environment(state, cuda=cuda)
        self.process = start_child("cuda_child", {**seen, **(variables or {})})
        if device is not None:
            assert [0, 0] == [self("init()"), self(f"use({device})")]
