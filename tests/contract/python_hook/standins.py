"""
Stand-ins for the frameworks: the names, signatures and laziness that the hook relies on, no more.

Taken from reading torch 1.8 and 2.15, and TensorFlow 1.4, 1.13, 1.15, 2.0, 2.4 and 2.21.
"""

_TORCH = """
import types
__version__ = "{version}"
_C = types.SimpleNamespace(calls=[], device=0, count={count})

def _set_device(device):
    _C.calls.append(("device", device))
    _C.device = device

def _set_fraction(fraction, device):
    if {failing}:
        raise {failing}
    _C.calls.append((fraction, device))
    if {old}:
        _C.device = device

_C._cuda_setDevice = _set_device
_C._cuda_getDevice = lambda: _C.device
_C._cuda_setMemoryFraction = _set_fraction
from torch import cuda
"""

_CUDA = """
import torch
_queued_calls = []
_state = {"initialized": False, "initializing": False}

class DeferredCudaCallError(Exception):
    pass

def is_initialized():
    return _state["initialized"]

def _lazy_call(callable, **kwargs):
    callable() if is_initialized() else _queued_calls.append(callable)

def _lazy_init():
    if is_initialized() or _state["initializing"]:
        return
    _state["initializing"] = True
    for queued in _queued_calls:
        try:
            queued()
        except Exception as error:
            raise DeferredCudaCallError(str(error)) from error
    _state.update(initialized=True, initializing=False)

def device_count():
    return torch._C.count

def _get_device_index(device, optional=False, allow_cpu=False):
    return torch._C.device if device is None and optional else int(device)

def set_device(device):
    _lazy_init()
    torch._C._cuda_setDevice(_get_device_index(device))
"""

_FRACTION = """
import torch

def set_per_process_memory_fraction(fraction, device=None):
    torch.cuda._lazy_init()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError("Invalid fraction value")
    torch._C._cuda_setMemoryFraction(fraction, torch.cuda._get_device_index(device, True))
"""


def torch(version: str = "2.13.0+cu130", *, count: int = 1, failing: str = "") -> dict[str, str]:
    """
    Return a torch that queues calls until CUDA starts, and keeps what the allocator was told.

    As before 2.10, an old one makes the device it caps the current one.
    """
    parts = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    old = parts < [2, 10]
    capless = [1] == parts[:1] and parts < [1, 8]
    values = {"version": version, "count": count, "failing": failing or None, "old": old}
    cuda = _CUDA if capless else f"{_CUDA}\nfrom torch.cuda.memory import *\n"
    return {
        "torch/__init__.py": _TORCH.format(**values),
        "torch/cuda/__init__.py": cuda,
        "torch/cuda/memory.py": "" if capless else _FRACTION,
    }


_POOL = """
import ctypes
runtime, used, unused = ctypes.CDLL("libcudart.so.13"), {}, {}

def take(card, mib):
    address = ctypes.c_void_p()
    runtime.cudaSetDevice(card)
    assert not runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20))
    used[address.value] = (card, mib << 20)

def drop():
    unused.update(used)
    used.clear()

def held(card, *pools):
    return sum(size for pool in pools for where, size in pool.values() if where == card)

def empty():
    while unused:
        runtime.cudaFree(ctypes.c_void_p(unused.popitem()[0]))

def free():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value
"""

_TORCH_POOL = """
from pool import empty as empty_cache, free, held, runtime, unused, used

def memory_reserved(card):
    return held(card, used, unused)

def memory_allocated(card):
    return held(card, used)

def mem_get_info(card):
    runtime.cudaSetDevice(card)
    return free()

torch._C._cuda_setDevice = runtime.cudaSetDevice
torch._C._cuda_maybeExchangeDevice = lambda card: None

class CUDAGraph:
    def capture_begin(self, refused=False):
        assert not refused
    def capture_end(self, refused=False):
        assert not refused
"""

_CUPY_POOL = """
from types import SimpleNamespace
from pool import empty, free, held, runtime, unused, used
current = [0]

class Device:
    def __init__(self, card):
        self.card = card
    def use(self):
        runtime.cudaSetDevice(self.card)
        current[0] = self.card

class Stream:
    ptr = 0
    def begin_capture(self):
        pass
    def end_capture(self):
        pass

cuda = SimpleNamespace(Device=Device, Stream=Stream, runtime=SimpleNamespace(memGetInfo=free))

def get_default_memory_pool():
    return SimpleNamespace(
        total_bytes=lambda: held(current[0], used, unused),
        free_bytes=lambda: held(current[0], unused),
        free_all_blocks=empty)
"""


def pools() -> dict[str, str]:
    """Return a torch and a cupy that keep what was freed, of the cards that CUDA's runtime has."""
    files = torch()
    cuda = f"{files['torch/cuda/__init__.py']}\n{_TORCH_POOL}"
    return {**files, "pool.py": _POOL, "torch/cuda/__init__.py": cuda, "cupy.py": _CUPY_POOL}


_PROTO = """
import copy

class Message(object):
    fields = {}
    def __init__(self, **given):
        for name, default in self.fields.items():
            setattr(self, name, given[name] if name in given else default())
    def CopyFrom(self, other):
        if type(other) is not type(self):
            raise TypeError("not a %s" % type(self).__name__)
        self.__dict__ = copy.deepcopy(other.__dict__)

class VirtualDevices(Message):
    fields = {"memory_limit_mb": list}
class Experimental(Message):
    fields = {"virtual_devices": list}
class GPUOptions(Message):
    fields = {"per_process_gpu_memory_fraction": float, "allow_growth": bool,
              "experimental": Experimental}
class ConfigProto(Message):
    fields = {"gpu_options": GPUOptions}
class ServerDef(Message):
    fields = {"default_session_config": ConfigProto}
"""

_CONTEXT_2 = '''
from {root}.core.protobuf import config_pb2
class Context(object):
    def __init__(self, config=None, device_policy=None):
        self._config = config
    @property
    def config(self):
        """The config."""
        config = config_pb2.ConfigProto()
        if self._config is not None:
            config.CopyFrom(self._config)
        return config
_context = Context()
def context():
    return _context
'''

_CONTEXT_1 = """
class Context(object):
    def __init__(self, config=None, device_policy=None):
        self._config = config
"""

_SESSION = """
from {root}.core.protobuf import config_pb2
from {root}.python.eager import context
class BaseSession(object):
    def __init__(self, target="", graph=None, config=None):
        if config is None and hasattr(context, "context"):
            config = context.context().config
        if config is not None and not isinstance(config, config_pb2.ConfigProto):
            raise TypeError("config must be a tf.ConfigProto, but got %s" % type(config))
        self._config = config
class Session(BaseSession):
    def __init__(self, target="", graph=None, config=None):
        super(Session, self).__init__(target, graph, config=config)
"""

_DEVICE_LIB = """
def list_local_devices(session_config=None):
    return [session_config]
"""

_SERVER_LIB = """
from {root}.core.protobuf import config_pb2
def _make_server_def(server_or_cluster_def, job_name, task_index, protocol, config):
    made = config_pb2.ServerDef()
    if config is not None:
        made.default_session_config.CopyFrom(config)
    return made
class Server(object):
    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
                 config=None, start=True):
        self.server_def = _make_server_def(
            server_or_cluster_def, job_name, task_index, protocol, config)
"""


def tensorflow(root: str = "tensorflow", *, context_config: bool = True) -> dict[str, str]:
    """
    Return a TensorFlow; without `context_config` one before 1.14, whose context is handed a config.

    The root is `tensorflow_core` in 1.15 and 2.0.
    """
    context = _CONTEXT_2 if context_config else _CONTEXT_1
    files = {
        "core/protobuf/config_pb2.py": _PROTO,
        "python/eager/context.py": context.replace("{root}", root),
        "python/client/session.py": _SESSION.replace("{root}", root),
        "python/client/device_lib.py": _DEVICE_LIB,
        "python/training/server_lib.py": _SERVER_LIB.replace("{root}", root),
    }
    folders = ("", "core/", "core/protobuf/", "python/", "python/eager/", "python/client/")
    packages = dict.fromkeys([f"{each}__init__.py" for each in (*folders, "python/training/")], "")
    return {f"{root}/{name}": text for name, text in (packages | files).items()}
