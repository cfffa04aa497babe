"""
Hold TensorFlow, and PyTorch before 2.10, to the share of the card that gpufence gave the container.

No environment variable caps these, so this one file is mounted into the container, and Python runs
it at every start, for a line in a site folder or because it stands first on PYTHONPATH. It imports
no framework; a finder waits for the modules that matter and changes them once they are loaded.
Shares are read from GPUFENCE_MEMORY_FRACTION and GPUFENCE_TF_FRACTION when needed; without a
readable one nothing changes. A program may always ask for less. A container that may use more than
its request gives the unused part of PyTorch's and CuPy's caches back while its card is nearly full.
Whatever goes wrong in here stays in here, silently. The interpreter is the user's, so the syntax is
that of 2.7 and 3.6 alike; before 3.6 only the sitecustomize that this one hides is run.
"""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, ANN204 - Python 2.7 knows no annotations
# ruff: noqa: RUF005 - nor newer syntax, and old interpreters are the point
# ruff: noqa: BLE001, SLF001 - every error ends in here; frameworks have no public place for a cap
# ruff: noqa: PTH100, PTH120, PLC0415 - importing what a start does not need would cost milliseconds
# mypy: allow-untyped-defs, allow-untyped-calls

import os
import sys

NAME = "sitecustomize"
PLANNERS = ("vllm", "sglang")
RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def attempt(act, *args):
    try:
        return act(*args)
    except Exception:  # not BaseException: signals and exits are not ours to stop
        return None


def share(text):
    value = attempt(float, text)
    return value if value and 0 < value <= 1 else None  # zero would mean "all" to TensorFlow


def torch_share():
    """
    Return our share, or less where the allocator's own setting says less. In vLLM and SGLang that
    setting alone counts, fitted to the share their own flag names: given less they die at start.
    """
    ours = share(os.environ.get("GPUFENCE_MEMORY_FRACTION"))
    known = [] if any(name in sys.modules for name in PLANNERS) else [ours]
    for variable in ALLOCATOR:
        for setting in os.environ.get(variable, "").split(","):
            key, _, value = setting.partition(":")
            if key.strip() == "per_process_memory_fraction":
                known.append(share(value))
    known = [value for value in known if ours and value]
    return min(known) if known else None


def change_torch(cuda):
    """
    Queue the cap behind torch's own start of CUDA, which stays as lazy as it was. Before 2.10 a cap
    costs a CUDA context on its device (hundreds of MiB) and moves the current device there: so one
    of several processes caps only its own device, known by rank or once chosen; one alone, all.
    """
    torch, capped = sys.modules["torch"], set()
    costly = not attempt(lambda: tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 10))

    def cap(device):
        value = torch_share()
        if value and device not in capped:
            torch._C._cuda_setMemoryFraction(value, device)
            capped.add(device)

    def cap_all():
        current, count = torch._C._cuda_getDevice(), cuda.device_count()
        for device in own_devices(count) if costly and count > 1 else range(count):
            attempt(cap, device)
        # Since torch 2.1 there is a way back that creates no context.
        getattr(torch._C, "_cuda_maybeExchangeDevice", torch._C._cuda_setDevice)(current)

    def set_fraction(function, fraction, device=None):
        ours = attempt(torch_share) or 1
        too_much = isinstance(fraction, float) and ours < fraction <= 1
        function(ours if too_much else fraction, device)
        attempt(lambda: capped.add(cuda._get_device_index(device, optional=True)))

    def set_device(function, device):
        function(device)
        attempt(lambda: cap(cuda._get_device_index(device, optional=True)))

    if hasattr(cuda, "set_per_process_memory_fraction"):  # since 1.8; there is no cap before
        cuda._lazy_call(lambda: attempt(torch_share) and attempt(cap_all))
        for module in (cuda, cuda.memory):
            intercept(module, "set_per_process_memory_fraction", set_fraction)
        if costly:
            intercept(cuda, "set_device", set_device)


def own_devices(count):
    for rank in (os.environ.get(variable, "") for variable in RANKS):
        if rank.isdigit() and int(rank) < count:
            return [int(rank)]
    processes = sys.modules.get("multiprocessing.process")
    child = processes and type(processes.current_process()).__name__ != "_MainProcess"
    return [] if child else range(count)


def intercept(owner, name, act):
    import functools

    function = getattr(owner, name)
    wrapper = functools.wraps(function)(lambda *args, **kwargs: act(function, *args, **kwargs))
    setattr(owner, name, wrapper)


def limit_mb(ours):
    fraction = share(os.environ.get("GPUFENCE_MEMORY_FRACTION"))
    limit = attempt(float, os.environ.get("GPUFENCE_MEMORY_LIMIT_BYTES"))
    card = fraction and limit and limit / (fraction + 1e-6)  # it was rounded down to six decimals
    return card and int(min(card * ours, limit)) >> 20


def clamp(config):
    """
    Lower a ConfigProto to our share. TensorFlow refuses to start with both a fraction and virtual
    devices: the limits of such devices shrink together, or stay where the card's size is unknown.
    """
    ours, options = share(os.environ.get("GPUFENCE_TF_FRACTION")), config.gpu_options
    groups = getattr(getattr(options, "experimental", None), "virtual_devices", ())
    limit = limit_mb(ours) if ours and groups else None
    for group in groups if limit else ():
        wanted = list(group.memory_limit_mb) or [limit]
        scale = min(1.0, limit / sum(wanted))
        group.memory_limit_mb[:] = [max(1, int(each * scale)) for each in wanted]
    if ours and not groups and not 0 < options.per_process_gpu_memory_fraction <= ours:
        options.per_process_gpu_memory_fraction = ours  # zero, the default, means the whole card
    return config


def clamped(config):
    if not share(os.environ.get("GPUFENCE_TF_FRACTION")):
        return config
    if config is None:
        names = [root + ".core.protobuf.config_pb2" for root in ROOTS]
        return clamp(next(sys.modules[name] for name in names if name in sys.modules).ConfigProto())
    copy = type(config)()
    copy.CopyFrom(config)  # the program's own stays as it is
    return clamp(copy)


def replace_argument(owner, name, parameter, new=clamped):
    code = getattr(owner, name).__code__
    place = code.co_varnames[: code.co_argcount].index(parameter)

    def act(function, *args, **kwargs):
        given = args[place] if len(args) > place else kwargs.get(parameter)
        value = attempt(new, given) or given
        if len(args) > place:
            return function(*(args[:place] + (value,) + args[place + 1 :]), **kwargs)
        return function(*args, **dict(kwargs, **{parameter: value}))

    intercept(owner, name, act)


def change_context(module):
    config = module.Context.__dict__.get("config")
    if not isinstance(config, property):  # before 1.14
        replace_argument(module.Context, "__init__", "config")
        return

    def capped(self):
        value = config.__get__(self)
        return attempt(clamped, value) or value

    module.Context.config = property(capped, config.fset, config.fdel, config.__doc__)


def change_session(module):
    def new(config):  # from 1.14 on None means the context's, capped above
        inherits = hasattr(getattr(module, "context", None) and module.context.Context, "config")
        return None if config is None and inherits else clamped(config)

    replace_argument(module.BaseSession, "__init__", "config", new)


def change_device_lib(module):  # listing creates each card's allocator: the first one made stays
    replace_argument(module, "list_local_devices", "session_config")


def change_server_lib(module):  # a server creates its devices as it starts, before any session
    def make(function, *args, **kwargs):
        made = function(*args, **kwargs)
        attempt(lambda: clamp(made.default_session_config))
        return made

    intercept(module, "_make_server_def", make)


def change_cuda(cuda):
    attempt(change_torch, cuda)
    if bursts():
        attempt(guard, cuda.CUDAGraph, "capture_begin", "capture_end", "capture_end_pre")
        cuda._lazy_call(lambda: attempt(watch))


def change_cupy(cupy):  # it starts CUDA without a word: the thread sees when
    if bursts():
        attempt(guard, cupy.cuda.Stream, "begin_capture", "end_capture")
        os.register_at_fork(after_in_child=lambda: attempt(watch))
        watch()


def bursts():
    """Return the request, and below how much free memory of a card to give back, in bytes."""
    names = ("GPUFENCE_REQUEST_BYTES", "GPUFENCE_GIVE_BACK_BYTES")
    values = [attempt(int, os.environ.get(name)) for name in names]
    return values if all(value and value > 0 for value in values) else None


LOCK = __import__("_thread" if sys.version_info >= (3,) else "thread").allocate_lock()
CAPTURES = set()  # type: set[int]  # while a graph is captured no thread may free memory
WATCHED = []  # type: list[int]  # the process that has a thread; a forked one has none
PAUSE = 60
BESIDE = 1 << 30  # what a process may hold beside its pools: rather too early than evicted
WORTH = 64 << 20


def guard(owner, begin, *ends):
    def begun(function, graph, *args, **kwargs):
        with LOCK:  # not while memory is given back
            CAPTURES.add(id(graph))
        try:
            return function(graph, *args, **kwargs)
        except BaseException:
            CAPTURES.discard(id(graph))
            raise

    def ended(function, graph, *args, **kwargs):
        try:
            return function(graph, *args, **kwargs)
        finally:
            CAPTURES.discard(id(graph))

    intercept(owner, begin, begun)
    for name in ends:
        attempt(intercept, owner, name, ended)


def watch():
    """
    Start this process's thread: the allocators' own locks allow that. The interpreter's end waits
    for it only inside of a framework, where Python must not stop a thread.
    """
    import _thread
    import atexit

    pid, known = os.getpid(), bursts()
    if known and pid not in WATCHED:
        WATCHED[:] = [pid]
        atexit.register(end, pid)
        _thread.start_new_thread(attempt, (keep_looking, known[0], known[1]))


def end(pid):
    if pid in WATCHED and pid == os.getpid():
        WATCHED[:] = []
        LOCK.acquire(timeout=5) and LOCK.release()


def keep_looking(request, floor):
    import time

    pause = 0
    while True:
        time.sleep(1)
        pause -= 1
        cards = pause < 0 and attempt(started)
        with LOCK:
            if not WATCHED:
                return
            if cards and not CAPTURES and give_back(cards, request, floor):
                pause = PAUSE


def started():
    """Return the devices on which CUDA has started, by questions that start it nowhere."""
    import ctypes

    driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    # Relaxed: captures of other threads do not fail for what this one does.
    driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(2)))
    count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    asked = ctypes.byref(flags), ctypes.byref(active)
    known = range(0 if driver.cuDeviceGetCount(ctypes.byref(count)) else count.value)
    return [i for i in known if not driver.cuDevicePrimaryCtxGetState(i, *asked) and active.value]


def give_back(cards, request, floor):
    given = []
    for card in cards:
        pools = [attempt(torch_pool, card, len(cards)), attempt(cupy_pool, card)]
        pools = [pool for pool in pools if pool]
        held, unused = [sum(pool[i] for pool in pools) for i in (0, 1)]
        if held + BESIDE > request and unused >= WORTH and pools[0][2] < floor:
            given += [attempt(pool[3]) for pool in pools]
    return given


def torch_pool(card, cards):
    """
    Return what is held, unused and free on a card, and what empties the pool: with that card as the
    current device, lest CUDA start on another. Where there are several, torch waits for the wrong
    one's kernels before it unmaps expandable segments (pytorch/pytorch#196258).
    """
    torch = sys.modules["torch"]
    held = torch.cuda.memory_reserved(card)
    settings = "".join(os.environ.get(variable, "") for variable in ALLOCATOR)
    if not held or (cards > 1 and "expandable_segments" in settings):
        return None
    torch._C._cuda_setDevice(card)
    unused, free = held - torch.cuda.memory_allocated(card), torch.cuda.mem_get_info(card)[0]
    return held, unused, free, torch.cuda.empty_cache


def cupy_pool(card):
    cupy = sys.modules["cupy"]
    cupy.cuda.Device(card).use()
    pool, free = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()[0]
    return pool.total_bytes(), pool.free_bytes(), free, pool.free_all_blocks


ROOTS = ("tensorflow", "tensorflow_core")  # the second in 1.15 and 2.0
CHANGES = {"torch.cuda": change_cuda, "cupy": change_cupy}
for _root in (root + ".python." for root in ROOTS):
    CHANGES[_root + "eager.context"] = change_context
    CHANGES[_root + "client.session"] = change_session
    CHANGES[_root + "client.device_lib"] = change_device_lib
    CHANGES[_root + "training.server_lib"] = change_server_lib


class Finder:
    def __init__(self):
        self.asking = set()
        self.hidden = None  # how to load the sitecustomize that we hide, for one import
        self.gpufence_passed = set()  # folders whose sitecustomize has had its turn

    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            spec, self.hidden = self.hidden, None
            return spec
        return attempt(self._find, name, path, target) if name in CHANGES else None

    def _find(self, name, path, target):
        import _thread

        asked = (name, _thread.get_ident())
        if asked in self.asking:
            return None  # by another finder, which asks all of us in its turn
        self.asking.add(asked)
        try:
            for each in list(sys.meta_path):
                find = None if each is self else getattr(each, "find_spec", None)
                spec = find and find(name, path, target)
                if spec:
                    return watched(spec)
        finally:
            self.asking.discard(asked)
        return None


def watched(spec):
    run = spec.loader.exec_module

    def exec_module(module):
        run(module)
        if module.__name__ == spec.name:
            attempt(CHANGES[spec.name], module)

    spec.loader.exec_module = exec_module  # on this one object: a module keeps its kind of loader
    return spec


def folders():
    ours = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    named = [(entry, attempt(os.path.realpath, entry)) for entry in sys.path]
    return [(entry, real) for entry, real in named if real not in (None, ours)]


def install():
    for finder in sys.meta_path:
        if hasattr(finder, "gpufence_passed"):
            return finder  # the sitecustomize we hide may look for the next one and find us again
    finder = Finder()
    sys.meta_path.insert(0, finder)
    for name in CHANGES.keys() & sys.modules.keys():  # a .pth file may have been earlier
        attempt(CHANGES[name], sys.modules[name])
    return finder


def find_hidden(finder):
    search = next(each for each in sys.meta_path if getattr(each, "__name__", "") == "PathFinder")
    for entry, real in folders():
        spec = None if real in finder.gpufence_passed else search.find_spec(NAME, [entry])
        if spec and spec.loader:
            finder.gpufence_passed.add(real)
            return spec
    return None


def start():
    try:
        finder = install()
        finder.hidden = find_hidden(finder)
    except BaseException:  # an exit here would end the user's program before it began
        return
    if finder.hidden:
        sys.modules.pop(NAME, None)
        __import__(NAME)  # outside the guard: what the image's own file raises is the image's word


def start_before_3_6():
    import imp

    ourselves = sys.modules.pop(NAME)  # kept: in Python 2 a module that nobody holds is emptied
    try:
        found = imp.find_module(NAME, [entry for entry, _ in folders()])
    except ImportError:
        sys.modules[NAME] = ourselves
        return
    imp.load_module(NAME, *found)  # type: ignore[arg-type]  # imp's stubs contradict each other


if __name__ == "gpufence_site" and sys.version_info >= (3, 6):
    attempt(install)  # by a line in a site folder: nothing is hidden there
if __name__ == NAME:
    (start if sys.version_info >= (3, 6) else start_before_3_6)()
