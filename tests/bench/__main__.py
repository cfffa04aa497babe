"""Runs every bench beside this file, one after the other: `python -m tests.bench [name ...]`."""

import pkgutil
import subprocess
import sys

import tests.bench


def main(wanted: list[str]) -> int:
    names = [module.name for module in pkgutil.iter_modules(tests.bench.__path__)]
    benches = [name for name in names if not name.startswith("_")]
    unknown = sorted(set(wanted) - set(benches))
    if unknown:
        print(f"no bench is called {', '.join(unknown)}; there are: {', '.join(benches)}")
        return 2
    failed = 0
    for name in wanted or benches:
        print(f"\n==> {name}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{name}"]
        failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
