"""
What was measured, as data and as the tables of docs/frameworks.md.

`results.json` has one entry for each environment and case; a run replaces those that it measured.
"""

import json
import sys
from pathlib import Path
from typing import Any

from simulator.wheels.catalog import WHEEL_SETS
from tests.frameworks.cases import CASES, TOLD_MIB

RESULTS = Path(__file__).with_name("results.json")
TITLES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "cupy": "CuPy",
    "onnxruntime": "ONNX Runtime",
}

Result = dict[str, Any]


def load() -> dict[str, dict[str, Result]]:
    """Return the results by environment and case."""
    if not RESULTS.exists():
        return {}
    results: dict[str, dict[str, Result]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def store(wheels: str, case: str, result: Result) -> None:
    """Replace one result, in the order of the catalog and the cases."""
    results = load()
    results.setdefault(wheels, {})[case] = result
    ordered = {
        one.name: {
            known.name: results[one.name][known.name]
            for known in CASES[one.framework]
            if known.name in results[one.name]
        }
        for one in WHEEL_SETS
        if one.name in results
    }
    text = json.dumps(ordered, indent=1, ensure_ascii=False)
    RESULTS.write_text(f"{text}\n", encoding="utf-8")


def tables() -> str:
    """Return a table for each framework: the cases, and where each version stopped."""
    results = load()
    return "\n\n".join(_table(framework, results) for framework in CASES)


def _table(framework: str, results: dict[str, dict[str, Result]]) -> str:
    columns = [one for one in WHEEL_SETS if one.framework == framework and one.name in results]
    heads = [f"{TITLES[framework]} {one.version}" for one in columns]
    rows = [
        [case.name, *(_cell(results[one.name].get(case.name)) for one in columns)]
        for case in CASES[framework]
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
    kept = "capped" if result["held_mib"] <= TOLD_MIB else "not capped"
    warned = ", warned of" if result["warned"] else ""
    return f"{kept}, {result['held_mib']} MiB{warned}"


if __name__ == "__main__":
    sys.stdout.write(f"{tables()}\n")
