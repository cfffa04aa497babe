"""
Take and give memory of a card with each framework's own allocator.

A framework is imported when its allocator is made, and not before: signals and settings come first.
Nothing here launches a kernel; simulated cards have none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 64 << 20


class RefusedError(Exception):
    """Raised with the framework's own words when it does not allocate."""


class NoGpuError(Exception):
    """Raised when a framework goes on without any card."""


class Allocator(Protocol):
    """`take` returns something that holds so many bytes as long as it exists."""

    version: str

    def take(self, size: int) -> object: ...

    def tidy(self) -> None:
        """Give back what the framework keeps of memory that nothing holds any longer."""
        ...


class Torch:
    def __init__(self, device: int) -> None:
        self._torch: Any = importlib.import_module("torch")
        self.version = str(self._torch.__version__)
        if not self._torch.cuda.is_available():
            raise NoGpuError("torch.cuda.is_available() is False")
        self._device = f"cuda:{device}"

    def take(self, size: int) -> object:
        torch = self._torch
        try:
            return torch.empty(size, dtype=torch.uint8, device=self._device)
        except torch.cuda.OutOfMemoryError as error:
            raise RefusedError(_said(error)) from error

    def tidy(self) -> None:
        self._torch.cuda.empty_cache()

    def uncap(self) -> None:
        """Take any cap away, as a program may do by itself."""
        self._torch.cuda.set_per_process_memory_fraction(1.0)


class Jax:
    def __init__(self, device: int) -> None:
        self._jax: Any = importlib.import_module("jax")
        self._numpy: Any = importlib.import_module("numpy")
        self.version = str(self._jax.__version__)
        devices = self._jax.devices()
        if devices[0].platform not in {"gpu", "cuda"}:
            raise NoGpuError(f"jax.devices() are {devices}")
        self._device = devices[device]

    def take(self, size: int) -> object:
        host = self._numpy.empty(size, dtype=self._numpy.uint8)  # never written to: costs nothing
        try:
            return self._jax.device_put(host, self._device).block_until_ready()
        except Exception as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise RefusedError(_said(error)) from error

    def tidy(self) -> None:
        """Do nothing: its arena never shrinks."""


class TensorFlow:
    def __init__(self, device: int) -> None:
        self._tf: Any = importlib.import_module("tensorflow")
        self.version = str(self._tf.__version__)
        if not self._tf.config.list_physical_devices("GPU"):
            raise NoGpuError("tf.config.list_physical_devices('GPU') is empty")
        self._device = f"/GPU:{device}"

    def limit(self, mebibytes: int) -> None:
        """Let a logical device have no more than that, as a program may before it uses any."""
        config = self._tf.config
        logical = config.LogicalDeviceConfiguration(memory_limit=mebibytes)
        config.set_logical_device_configuration(config.list_physical_devices("GPU")[0], [logical])

    def take(self, size: int) -> object:
        tf = self._tf
        try:
            with tf.device(self._device):
                return tf.raw_ops.Empty(shape=[size], dtype=tf.uint8, init=False)
        except tf.errors.ResourceExhaustedError as error:
            raise RefusedError(_said(error)) from error

    def tidy(self) -> None:
        """Do nothing: its arena never shrinks."""


class CuPy:
    def __init__(self, device: int) -> None:
        self._cupy: Any = importlib.import_module("cupy")
        self.version = str(self._cupy.__version__)
        self._cupy.cuda.Device(device).use()

    def take(self, size: int) -> object:
        try:
            return self._cupy.cuda.alloc(size)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise RefusedError(_said(error)) from error

    def tidy(self) -> None:
        self._cupy.get_default_memory_pool().free_all_blocks()


class OnnxRuntime:
    """A session's arena, which holds what each run returns. The model is one that only copies."""

    def __init__(self, device: int, limit: int | None = None) -> None:
        self._ort: Any = importlib.import_module("onnxruntime")
        self._numpy: Any = importlib.import_module("numpy")
        self.version = str(self._ort.__version__)
        self._number = device
        options = {"device_id": str(device), "arena_extend_strategy": "kSameAsRequested"}
        if limit is not None:
            options["gpu_mem_limit"] = str(limit)
        self._session = self._ort.InferenceSession(
            self._model(), providers=[("CUDAExecutionProvider", options)]
        )
        if "CUDAExecutionProvider" not in self._session.get_providers():
            raise NoGpuError(f"the session's providers are {self._session.get_providers()}")
        self._inputs: dict[int, object] = {}

    def take(self, size: int) -> object:
        binding = self._session.io_binding()
        try:
            value = self._inputs.get(size) or self._ort.OrtValue.ortvalue_from_shape_and_type(
                [size], self._numpy.uint8, "cuda", self._number
            )
            self._inputs[size] = value
            binding.bind_ortvalue_input("x", value)
            binding.bind_output("y", "cuda", self._number)
            self._session.run_with_iobinding(binding)
        except Exception as error:
            if "allocate" not in str(error).lower():
                raise
            raise RefusedError(_said(error)) from error
        return binding.get_outputs()

    def tidy(self) -> None:
        """Do nothing: its arena never shrinks."""

    def _model(self) -> bytes:
        helper: Any = importlib.import_module("onnx.helper")
        byte = importlib.import_module("onnx").TensorProto.UINT8
        node = helper.make_node("Identity", ["x"], ["y"])
        ends = [helper.make_tensor_value_info(name, byte, ["n"]) for name in ("x", "y")]
        graph = helper.make_graph([node], "copy", ends[:1], ends[1:])
        opset = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        return bytes(model.SerializeToString())


ALLOCATORS: dict[str, Callable[[int], Allocator]] = {
    "torch": Torch,
    "jax": Jax,
    "tensorflow": TensorFlow,
    "cupy": CuPy,
    "onnxruntime": OnnxRuntime,
}


def _said(error: BaseException) -> str:
    """Return an exception as Python prints it, without the pages that some add."""
    kind = type(error)
    first = str(error).strip().splitlines() or [""]
    return f"{kind.__module__}.{kind.__qualname__}: {first[0]}"
