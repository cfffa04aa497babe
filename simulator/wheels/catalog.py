"""
PURE. Which frameworks, in which versions, are run on simulated cards.

Pins name the framework alone; what it needs besides is its own choice. A version is here because
its way of reading settings differs from its neighbours', or because it is the oldest or the newest
that this Python can install.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufence.errors import InvalidError, Problem

PYTHON = "3.11"
OLD_NUMPY = "numpy<2"


@dataclass(frozen=True, slots=True)
class WheelSet:
    """
    One environment. `cuda` is the major of the runtime it links, `size_mib` what it takes on disk.

    `stand_ins` are libraries of NVIDIA's that its own import names, but that allocating memory does
    not call: each is replaced by one whose functions do nothing, so that it need not be installed.
    """

    name: str
    framework: str
    requirements: tuple[str, ...]
    cuda: int
    size_mib: int
    stand_ins: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The framework's exact version, from its pin."""
        return self.requirements[0].partition("==")[2]


_OLD_JAX = "0.4.23"

WHEEL_SETS = (
    WheelSet("torch-2.15", "torch", ("torch==2.15.0", "numpy"), 13, 5485),
    WheelSet("torch-2.10", "torch", ("torch==2.10.0", "numpy"), 12, 6961),
    WheelSet("torch-2.9", "torch", ("torch==2.9.1", "numpy"), 12, 6756),
    WheelSet("torch-2.5", "torch", ("torch==2.5.1", OLD_NUMPY), 12, 5130),
    WheelSet("jax-0.10", "jax", ("jax[cuda12]==0.10.2",), 12, 5573),
    WheelSet(
        "jax-0.4.23",
        "jax",
        (
            f"jax=={_OLD_JAX}",
            f"jaxlib=={_OLD_JAX}",
            f"jax-cuda12-plugin=={_OLD_JAX}",
            f"jax-cuda12-pjrt=={_OLD_JAX}",
            OLD_NUMPY,
            "scipy<1.13",
            "nvidia-cublas-cu12>=12.2.5.6,<12.4",
            "nvidia-cuda-cupti-cu12>=12.2.142,<12.4",
            "nvidia-cuda-nvcc-cu12>=12.2.140,<12.4",
            "nvidia-cuda-runtime-cu12>=12.2.140,<12.4",
            "nvidia-cudnn-cu12>=8.9.4.25,<9",
            "nvidia-cufft-cu12",
            "nvidia-cusolver-cu12",
            "nvidia-cusparse-cu12",
            "nvidia-nccl-cu12>=2.18.3",
            "nvidia-nvjitlink-cu12",
        ),
        12,
        4558,
    ),
    WheelSet("tensorflow-2.21", "tensorflow", ("tensorflow[and-cuda]==2.21.0",), 12, 6333),
    WheelSet("tensorflow-2.15", "tensorflow", ("tensorflow[and-cuda]==2.15.1",), 12, 4488),
    WheelSet(
        "cupy-12.3",
        "cupy",
        ("cupy-cuda12x==12.3.0", OLD_NUMPY),
        12,
        256,
        (
            "libcublas.so.12",
            "libcufft.so.11",
            "libcurand.so.10",
            "libcusolver.so.11",
            "libcusparse.so.12",
            "libnvrtc.so.12",
        ),
    ),
    WheelSet(
        "onnxruntime-1.31",
        "onnxruntime",
        ("onnxruntime-gpu==1.31.1", "numpy", "onnx"),
        13,
        449,
        (
            "libcublas.so.13",
            "libcublasLt.so.13",
            "libcudnn.so.9",
            "libcufft.so.12",
            "libcurand.so.10",
        ),
    ),
)


def find_wheels(name: str) -> WheelSet:
    """Find an environment by its name, or the newest one of a framework by that."""
    for one in WHEEL_SETS:
        if name in {one.name, one.framework}:
            return one
    choices = ", ".join(one.name for one in WHEEL_SETS)
    raise InvalidError(Problem("wheels", name, "is not known", f"use one of {choices}"))
