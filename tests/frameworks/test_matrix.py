"""Each framework's cap bites, in the matrix and by the hook."""

import datetime as dt
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cuda.build import RUNTIMES, SOURCES
from simulator.wheels.catalog import WHEEL_SETS, WheelSet, find_wheels
from simulator.wheels.install import is_built, packages_of
from simulator.workload.real.probe import SIGN
from tests.frameworks import report
from tests.frameworks.cases import ALL, HOOK, OURS, Case, every_case, is_chosen
from tests.frameworks.running import Injected, inject, run, run_probe

pytestmark = pytest.mark.frameworks

CHOSEN = [(wheels, case) for wheels, case in every_case() if is_chosen(wheels.name)]


@pytest.mark.parametrize(
    ("wheels", "case"), CHOSEN, ids=[f"{wheels.name}: {case.name}" for wheels, case in CHOSEN]
)
def test_a_cap_bites_or_is_warned_of(wheels: WheelSet, case: Case, tmp_path: Path) -> None:
    """A framework with the variables that the webhook injects stops where it shall."""
    untouched = case.user is None or case.alone
    injected = Injected(case.user or {}) if untouched else inject(case, tmp_path)
    outcome = run_probe(wheels, tmp_path, injected, case.asked)
    held, gpu = outcome.answer.get("held", 0), outcome.answer.get("gpu", True)
    instead = case.said_instead(wheels)
    report.store(
        wheels.name,
        case.name,
        {
            "version": wheels.version,
            "told": injected.variables,
            "held_mib": held,
            "gpu": gpu,
            "code": outcome.code,
            "said": (instead if instead in outcome.said else "") or outcome.last_words[:400],
            "warned": bool(case.warns) and case.warns in injected.warnings,
            "on": dt.datetime.now(dt.UTC).date().isoformat(),
        },
    )

    assert bool(instead) == (outcome.code != 0 or not gpu), outcome.said
    assert instead in outcome.said
    assert case.expected(wheels) == held, outcome.last_words
    assert case.warns in injected.warnings


VERSIONS = [
    pytest.param(name, marks=[] if is_chosen(name) else pytest.mark.skip("not asked for by ONLY"))
    for name in ("torch-2.15", "torch-2.9", "torch-2.5")
]
SITE = Case("carried by a line in a site folder", annotations=HOOK)
PATH = Case("carried by PYTHONPATH", annotations={"gpufence.io/python-hook": "pythonpath"})
CARRIERS = pytest.mark.parametrize("carrier", [SITE, PATH], ids=["site", "path"])
CHILDREN = f"""
import json, multiprocessing, sys
sys.path.append({str(Path(__file__).resolve().parents[2])!r})

def work(answers):
    from simulator.workload.real.probe import probe
    answers.put(probe({{"framework": "torch"}}))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    answers = context.Queue()
    child = context.Process(target=work, args=(answers,))
    child.start()
    print(f"\\n{SIGN}{{json.dumps(answers.get())}}", flush=True)
    child.join()
"""


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_any_kind_is_capped(
    name: str, method: str, carrier: Case, tmp_path: Path
) -> None:
    """Forked and spawned processes keep to the cap like their parent."""
    (tmp_path / "program.py").write_text(CHILDREN)
    injected = inject(carrier, tmp_path)
    outcome = run(find_wheels(name), tmp_path, ("program.py", method), injected)

    assert OURS == outcome.answer.get("held"), outcome.said


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flags", [("-O",), ("-s",), ("-Xutf8",)])
def test_most_flags_change_nothing(
    name: str, flags: tuple[str, ...], carrier: Case, tmp_path: Path
) -> None:
    """The cap is there with every flag that leaves PYTHONPATH alone."""
    outcome = run_probe(find_wheels(name), tmp_path, inject(carrier, tmp_path), flags=flags)

    assert OURS == outcome.answer.get("held"), outcome.said


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_a_python_that_ignores_its_environment_is_capped(
    name: str, flag: str, tmp_path: Path
) -> None:
    """The line in the site folder is read also where Python is told to ignore its variables."""
    outcome = run_probe(find_wheels(name), tmp_path, inject(SITE, tmp_path), flags=(flag,))

    assert OURS == outcome.answer.get("held"), outcome.said


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_without_pythonpath_the_path_carries_nothing(name: str, flag: str, tmp_path: Path) -> None:
    """A Python that ignores PYTHONPATH has no hook; what PyTorch reads itself still counts."""
    outcome = run_probe(find_wheels(name), tmp_path, inject(PATH, tmp_path), flags=(flag,))
    reads_it_itself = name == "torch-2.15"

    assert (OURS if reads_it_itself else ALL) == outcome.answer.get("held"), outcome.said


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("theirs", ["print('theirs ran')", "raise OSError('theirs ran')"])
def test_an_images_own_sitecustomize_runs_too(
    name: str, theirs: str, carrier: Case, tmp_path: Path
) -> None:
    """A sitecustomize of the image's own has its turn, also if it fails, and the cap is there."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(theirs)
    case = replace(carrier, user={"PYTHONPATH": str(own)})
    outcome = run_probe(find_wheels(name), tmp_path, inject(case, tmp_path))

    assert OURS == outcome.answer.get("held"), outcome.said
    assert "theirs ran" in outcome.said


def test_the_program_of_the_children_is_python() -> None:
    """The text that children are started from can be compiled, and answers as the probe does."""
    compile(CHILDREN, "program.py", "exec")

    assert json.dumps(SIGN)[1:-1] in CHILDREN


RUNTIME = (SOURCES / "runtime" / "runtime.h").read_text(encoding="utf-8")
API = (SOURCES / "api.h").read_text(encoding="utf-8")
LEFT_OUT = frozenset({"reserved"})
OTHER_NAMES = {
    "allocation_properties": (
        "CUmemAllocationProp",
        {"type": "type", "handle_types": "requestedHandleTypes", "location": "location"},
    ),
    "access": ("CUmemAccessDesc", {"location": "location", "flags": "flags"}),
    "pool_properties": (
        "CUmemPoolProps",
        {
            "type": "allocType",
            "handle_types": "handleTypes",
            "location": "location",
            "most": "maxSize",
        },
    ),
    "uuid": ("CUuuid", {"bytes": "bytes"}),
}
SAME_NAMES = {
    "device_properties": "struct cudaDeviceProp",
    "pointer_attributes": "struct cudaPointerAttributes",
}
NUMBERS = {
    "POOL_THRESHOLD": "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD",
    "POOL_RESERVED": "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT",
    "POOL_USED_HIGH": "CU_MEMPOOL_ATTR_USED_MEM_HIGH",
    "POINTER_MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
    "POINTER_IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED",
    "POINTER_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    "POINTER_START": "CU_POINTER_ATTRIBUTE_RANGE_START_ADDR",
    "POINTER_POOL": "CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE",
    "ATTRIBUTE_MULTIPROCESSORS": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "ATTRIBUTE_MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "115": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED",
    "102": "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
    "97": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "CU_OUT_OF_MEMORY": "CUDA_ERROR_OUT_OF_MEMORY",
    "CU_CONTEXT_IS_DESTROYED": "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CU_NOT_SUPPORTED": "CUDA_ERROR_NOT_SUPPORTED",
    "CU_HOST_MEMORY_NOT_REGISTERED": "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
}


def headers_of(major: int) -> list[Path]:
    """Return the folders with the headers of a wheel that is here, those for compilers too."""
    for one in WHEEL_SETS:
        if one.cuda == major and is_built(one):
            packages = packages_of(one)
            drivers = [path.parent for path in packages.glob("nvidia/*/include/driver_types.h")]
            crt = [path.parents[1] for path in packages.rglob("crt/host_defines.h")]
            if drivers and crt:
                return [drivers[0], crt[0]]
    pytest.skip(f"no wheel with headers of CUDA {major} is built")


def fields_of(name: str) -> list[str]:
    """Return the fields of one of our structures, in any of its forms."""
    body = re.search(rf"struct {name} {{(.*?)\n}};", RUNTIME, re.DOTALL)
    assert body is not None
    code = re.sub(r"#.*", "", body[1])
    declared = re.sub(r"\[[^]]*\]|\*", "", code).replace("struct ", "").split(";")
    names = [
        re.sub(r"^\s*(?:unsigned|int|long|size_t|char|void|uuid)\s+", "", one) for one in declared
    ]
    return [word.strip() for one in names for word in one.split(",") if word.strip()]


def claims() -> Iterator[str]:
    for ours, theirs in SAME_NAMES.items():
        yield f"sizeof(struct {ours}) == sizeof({theirs})"
        for field in fields_of(ours):
            if field not in LEFT_OUT:
                yield f"#{field}#offsetof(struct {ours}, {field}) == offsetof({theirs}, {field})"
    for ours, (theirs, fields) in OTHER_NAMES.items():
        yield f"sizeof(struct {ours}) == sizeof({theirs})"
        for field, other in fields.items():
            yield f"offsetof(struct {ours}, {field}) == offsetof({theirs}, {other})"
    for ours, theirs in NUMBERS.items():
        yield f"{ours} == {theirs}"


@pytest.mark.parametrize("major", RUNTIMES)
def test_declarations_agree_with_the_headers(major: int, tmp_path: Path) -> None:
    """The compiler finds each of our structures laid out like the documented one."""
    folders = headers_of(major)
    removed = {
        *("clockRate", "deviceOverlap", "kernelExecTimeoutEnabled", "computeMode"),
        *("maxTexture1DLinear", "memoryClockRate", "singleToDoublePrecisionPerfRatio"),
        "cooperativeMultiDeviceLaunch",
    }
    added = {
        *("deviceNumaConfig", "deviceNumaId", "mpsEnabled", "hostNumaId", "gpuPciDeviceID"),
        *("gpuPciSubsystemID", "hostNumaMultinodeIpcSupported"),
    }
    absent = removed if major >= max(RUNTIMES) else added
    checks = []
    for claim in claims():
        field = re.match(r"#(\w+)#", claim)
        if field is None or field[1] not in absent:
            checks.append(re.sub(r"^#\w+#", "", claim))
    lines = "\n".join(f'_Static_assert({one}, "{one}");' for one in checks)
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <cuda.h>\n#include <driver_types.h>\n"
        f'#include "runtime/runtime.h"\n{lines}\n'
    )
    done = subprocess.run(
        [
            *("cc", "-std=gnu11", "-fsyntax-only", f"-DRUNTIME_VERSION={RUNTIMES[major]}"),
            *(f"-I{SOURCES}", *(f"-I{folder}" for folder in folders), str(source)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == done.stderr
