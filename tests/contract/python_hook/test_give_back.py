"""What a process that may use more than its request keeps for later, it gives back in time."""

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.cuda.build import environment
from simulator.nvml.state import State
from tests.contract.python_hook.standins import pools
from tests.contract.python_hook.worlds import SHARES, interpreters, said, start, write

MODERN = {name: path for name, path in interpreters().items() if not name.startswith("2.")}
CARD_MIB = 40960
REQUEST, FLOOR = "GPUFENCE_REQUEST_BYTES", "GPUFENCE_GIVE_BACK_BYTES"
BURSTS = {REQUEST: str(2 << 30), FLOOR: str(CARD_MIB << 20)}
BEGIN = """
import json, os, time
real, looks = time.sleep, []
def sleep(seconds):
    real(seconds / 50)
    if seconds == 1:
        looks.append(seconds)
time.sleep = sleep
def looked(times):
    enough = len(looks) + times
    while len(looks) < enough:
        real(0.01)
import torch, pool
def threads():
    return len(os.listdir("/proc/self/task"))
def burst(mib=3000):
    pool.take(0, mib)
    pool.drop()
def tell(*what):
    print(json.dumps(what), flush=True)
def kept():
    return pool.held(0, pool.unused) >> 20
"""
TORCH = "torch.cuda._lazy_init()\n"
CUPY = "import cupy\n"


def run(
    folder: Path, program: str, environ: dict[str, str] | None = None, **options: Any
) -> list[Any]:
    """Return what a program told that has pools on two simulated cards."""
    machine = State.create(folder / "cards", "2xA100-40")
    variables = {**SHARES, **environment(machine.path, cuda=13), **BURSTS, **(environ or {})}
    world = write(folder / "world", pools())
    result = start("-c", BEGIN + program, path=(world,), environ=variables, **options)
    return [json.loads(line) for line in said(result).splitlines()]


@pytest.mark.parametrize("python", MODERN.values(), ids=MODERN)
def test_what_is_unused_is_given_back(tmp_path: Path, python: str) -> None:
    """In each Python, what is not in use goes back to a card that is nearly full, and no more."""
    program = "pool.take(0, 500); burst(); pool.take(0, 500); looked(3); tell(kept(), *pool.used)"
    told = run(tmp_path, TORCH + program, python=python)

    assert [0, 1] == [told[0][0], len(told[0]) - 1]


@pytest.mark.parametrize("started", [TORCH, CUPY], ids=["torch", "cupy"])
@pytest.mark.parametrize(
    ("program", "environ", "kept"),
    [
        ("burst(); looked(3)", {}, 0),
        ("burst(); looked(3)", {REQUEST: str(8 << 30)}, 3000),
        ("burst(); looked(3)", {FLOOR: str(30 << 30)}, 3000),
        ("burst(30); pool.take(0, 3000); looked(3)", {}, 30),
    ],
    ids=["above the request", "within the request", "room on the card", "hardly any"],
)
def test_it_is_kept_where_nothing_asks_for_it(
    tmp_path: Path, started: str, program: str, environ: dict[str, str], kept: int
) -> None:
    """A cache is kept within the request, on a card with room, and where it is not worth it."""
    assert [[kept]] == run(tmp_path, f"{started}{program}; tell(kept())", environ)


@pytest.mark.parametrize(
    ("started", "begin", "end"),
    [
        (f"{TORCH}g = torch.cuda.CUDAGraph()", "g.capture_begin()", "g.capture_end()"),
        (f"{CUPY}s = cupy.cuda.Stream()", "s.begin_capture()", "s.end_capture()"),
    ],
    ids=["torch", "cupy"],
)
def test_nothing_is_freed_while_a_graph_is_captured(
    tmp_path: Path, started: str, begin: str, end: str
) -> None:
    """Memory that is freed would end a capture, so that it is freed behind its end."""
    program = f"{begin}; burst(); looked(3); tell(kept()); {end}; looked(3); tell(kept())"

    assert [[3000], [0]] == run(tmp_path, f"{started}\n{program}")


@pytest.mark.parametrize(
    "program", ["fails(g.capture_begin)", "g.capture_begin(); fails(g.capture_end)"]
)
def test_a_capture_that_fails_is_over(tmp_path: Path, program: str) -> None:
    """A capture whose begin or end is refused is waited for no longer."""
    fails = """
g = torch.cuda.CUDAGraph()
def fails(act):
    try:
        act(refused=True)
    except AssertionError:
        tell("refused")
"""
    told = run(tmp_path, f"{TORCH}{fails}{program}; burst(); looked(3); tell(kept())")

    assert [["refused"], [0]] == told


def test_what_is_needed_again_is_left_for_a_minute(tmp_path: Path) -> None:
    """A cache that fills again at once is emptied once a minute, not at every look."""
    program = """
burst(); looked(3); tell(kept())
burst(); looked(55); tell(kept())
looked(10); tell(kept())
"""

    assert [[0], [3000], [0]] == run(tmp_path, TORCH + program)


ACTIVE = """
import ctypes
def active(card):
    asked = ctypes.c_uint(), ctypes.c_int()
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuDevicePrimaryCtxGetState(card, *map(ctypes.byref, asked))
    return asked[1].value
"""


def test_looking_starts_cuda_nowhere(tmp_path: Path) -> None:
    """A card that the process does not use gets no context, whichever is its first."""
    program = """
looked(2); tell(active(0), active(1))
pool.take(1, 3000); pool.drop(); looked(3); tell(len(pool.unused), active(0), active(1))
"""
    told = [run(tmp_path, ACTIVE + each + program) for each in (TORCH, CUPY)]

    assert [[[0, 0], [0, 0, 1]]] * 2 == told


@pytest.mark.parametrize(("cards", "kept"), [((0,), 0), ((0, 1), 3000)], ids=["one", "two"])
def test_expandable_segments_of_several_cards_are_kept(
    tmp_path: Path, cards: tuple[int, ...], kept: int
) -> None:
    """Where PyTorch would wait for the wrong card's work before it unmaps, nothing is unmapped."""
    takes = "; ".join(f"pool.take({card}, 3000)" for card in cards)
    environ = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}

    assert [[kept]] == run(
        tmp_path, f"{TORCH}{takes}; pool.drop(); looked(3); tell(kept())", environ
    )


@pytest.mark.parametrize("name", [REQUEST, FLOOR])
@pytest.mark.parametrize("value", ["", "0", "-1", "6Gi"])
def test_no_thread_where_nothing_bursts(tmp_path: Path, name: str, value: str) -> None:
    """Without both amounts there is no thread."""
    assert [[1]] == run(tmp_path, f"{TORCH}{CUPY}tell(threads())", {name: value})


def test_there_is_one_thread(tmp_path: Path) -> None:
    """However many frameworks a process has started, one thread looks at their pools."""
    assert [[2]] == run(tmp_path, f"{TORCH}{CUPY}tell(threads())")


def test_a_forked_process_has_a_thread_of_its_own(tmp_path: Path) -> None:
    """A process that was forked before CUDA began gives back like its parent."""
    program = """
pid = os.fork()
burst(); looked(3); tell(kept())
if pid:
    os.waitpid(pid, 0)
"""

    assert [[0], [0]] == run(tmp_path, CUPY + program)


def test_an_end_waits_for_no_thread(tmp_path: Path) -> None:
    """The interpreter ends as ever, in silence, also where memory is being given back."""
    slow = "pool.empty = torch.cuda.empty_cache = lambda: (looks.clear(), real(0.2))\n"
    program = f"{TORCH}{slow}burst(); looked(2); tell(threads())"

    assert [[2]] == run(tmp_path, program)
