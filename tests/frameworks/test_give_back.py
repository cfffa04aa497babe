"""A real PyTorch, and a real CuPy, give back what they hold beyond their request and do not use."""

from pathlib import Path

import pytest

from simulator.wheels.catalog import WHEEL_SETS, WheelSet
from simulator.workload.real.probe import SIGN
from tests.frameworks.cases import CARD, HOOK, Case, is_chosen
from tests.frameworks.running import Injected, inject, run

pytestmark = pytest.mark.frameworks

PIECE = 1 << 30
BURSTS = {"GPUFENCE_REQUEST_BYTES": str(4 << 30), "GPUFENCE_GIVE_BACK_BYTES": str(37 << 30)}
TAKE = {
    "torch": f"import torch as t; take = lambda: t.empty({PIECE}, dtype=t.uint8, device='cuda:1')",
    "cupy": f"import cupy; cupy.cuda.Device(1).use(); take = lambda: cupy.cuda.alloc({PIECE})",
}
HELD = {
    "torch": "t.cuda.memory_reserved(1)",
    "cupy": "cupy.get_default_memory_pool().total_bytes()",
}
CHOSEN = [one for one in WHEEL_SETS if one.framework in TAKE and is_chosen(one.name)]
PROGRAM = """
import ctypes, json, time
{take}
held = [take() for _ in range(5)]
del held[2:]
end = time.monotonic() + 60
while {held} > 2 << 30 and time.monotonic() < end:
    time.sleep(0.05)
asked = ctypes.c_uint(), ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxGetState(0, *map(ctypes.byref, asked))
answer = {{"held": {held} >> 20, "elsewhere": asked[1].value}}
print("\\n" + {sign!r} + json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("wheels", CHOSEN, ids=lambda one: one.name)
def test_an_unused_cache_is_given_back(wheels: WheelSet, tmp_path: Path) -> None:
    """Of five pieces the two in use stay; the card that it does not use gets no context."""
    injected = inject(Case("bursts", annotations=HOOK), tmp_path)
    take, held = TAKE[wheels.framework], HELD[wheels.framework]
    (tmp_path / "program.py").write_text(PROGRAM.format(take=take, held=held, sign=SIGN))
    bursting = Injected({**injected.variables, **BURSTS}, site_line=injected.site_line)
    outcome = run(wheels, tmp_path, ("program.py",), bursting, cards=f"2x{CARD}")

    assert {"held": 2048, "elsewhere": 0} == outcome.answer, outcome.said
