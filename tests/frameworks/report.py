"""
What was measured, as data and as the tables of docs/frameworks.md.

`results.json` has one entry for each environment and case; a run replaces those that it measured.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.wheels.catalog import WHEEL_SETS
from tests.frameworks.cases import CASES, TOLD_MIB

RESULTS = Path(__file__).with_name("results.json")
LIMITED = Path(__file__).with_name("limited.json")
NOTHING, INJECTED, HOOKED = "no variable", "as injected", "as injected, with the start-up hook"
HALF = "a share of 0.5"
LIMITED_CASES = (NOTHING, INJECTED, HOOKED, HALF)
TOTALS = ("uncapped", "capped")
BY_SIZE = frozenset({"torch-2.15", "torch-2.10"})
"""Those that take a share of the device's size; the others take it of what cuMemGetInfo says."""

TITLES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "cupy": "CuPy",
    "onnxruntime": "ONNX Runtime",
}

Result = dict[str, Any]
Results = dict[str, dict[str, Result]]


def load(path: Path = RESULTS) -> Results:
    """Return the results by environment and case."""
    if not path.exists():
        return {}
    results: Results = json.loads(path.read_text(encoding="utf-8"))
    return results


def store(wheels: str, case: str, result: Result) -> None:
    """Replace one result, in the order of the catalog and the cases."""
    cases = {one.name: [case.name for case in CASES[one.framework]] for one in WHEEL_SETS}
    _store(RESULTS, (wheels, case, result), cases)


def store_limited(wheels: str, case: str, result: Result) -> None:
    """Replace one result of a container that the driver limits."""
    cases = [f"{name}, {totals}" for name in LIMITED_CASES for totals in TOTALS]
    _store(LIMITED, (wheels, case, result), dict.fromkeys((one.name for one in WHEEL_SETS), cases))


def _store(path: Path, new: tuple[str, str, Result], cases: Mapping[str, Sequence[str]]) -> None:
    wheels, case, result = new
    results = load(path)
    results.setdefault(wheels, {})[case] = result
    ordered = {
        one: {name: results[one][name] for name in known if name in results[one]}
        for one, known in cases.items()
        if one in results
    }
    path.write_text(f"{json.dumps(ordered, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def tables() -> str:
    """Return a table for each framework: cases with a webhook, and where each version stopped."""
    results = load()
    return "\n\n".join(_table(framework, results) for framework in CASES)


def _table(framework: str, results: dict[str, dict[str, Result]]) -> str:
    columns = [one for one in WHEEL_SETS if one.framework == framework and one.name in results]
    heads = [f"{TITLES[framework]} {one.version}" for one in columns]
    rows = [
        [case.name, *(_cell(results[one.name].get(case.name)) for one in columns)]
        for case in CASES[framework]
        if not case.alone
    ]
    dates = [max(each["on"] for each in results[one.name].values()) for one in columns]
    lines = [["the pod", *heads], ["---"] * (len(columns) + 1), *rows, ["measured on", *dates]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(result: Result | None) -> str:
    if result is None:
        return ""
    if not result["gpu"]:
        return f"**on the CPU**: `{result['said']}`"
    if result["code"]:
        when = "ends with" if result["held_mib"] else "does not start"
        return f"**{when}**: `{result['said']}`"
    held = f"{result['held_mib']} MiB"
    warned = ", warned" if result["warned"] else ""
    return held if result["held_mib"] <= TOLD_MIB else f"**{held}**{warned}"


def limited_table() -> str:
    """Return what each framework had of a limit that the driver holds."""
    results = load(LIMITED)
    columns = [f"{name}, {totals}" for name in LIMITED_CASES for totals in TOTALS]
    lines = [["framework", *columns, "measured on"], ["---"] * (len(columns) + 2)]
    for one in WHEEL_SETS:
        found = results.get(one.name)
        if found:
            cells = [f"{found[name]['held_mib']}" if name in found else "" for name in columns]
            on = max(each["on"] for each in found.values())
            lines.append([f"{TITLES[one.framework]} {one.version}", *cells, on])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.stdout.write(f"{tables()}\n\n{limited_table()}\n")
