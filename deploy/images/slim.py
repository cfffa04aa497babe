#!/usr/bin/env python3
"""
Name the installed packages that a program in a pod has no use for.

`kubernetes`, half of an image, reads kubeconfig files (docs/adr/0005-urllib3-in-pods.md), and pods
have none. It goes, and so does what nobody else asks for.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions

UNUSED = "kubernetes"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def superfluous(program: str, requires: dict[str, list[str]]) -> list[str]:
    """Return who is not reached from the program's own extra; `requires` is by canonical name."""
    kept = {"gpufence"}
    waiting = [_named(line) for line in requires["gpufence"] if _extra(line) in {None, program}]
    while waiting:
        name = waiting.pop()
        if name in kept or name == UNUSED or name not in requires:
            continue
        kept.add(name)
        waiting += [_named(line) for line in requires[name] if _extra(line) is None]
    return sorted(requires.keys() - kept)


def _named(requirement: str) -> str:
    found = _NAME.match(requirement)
    return canonical(found.group()) if found else ""


def _extra(requirement: str) -> str | None:
    found = _EXTRA.search(requirement)
    return found.group(1) if found else None


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    found = {canonical(each.metadata["Name"]): each.requires or [] for each in distributions()}
    sys.stdout.write("".join(f"{name}\n" for name in superfluous(sys.argv[1], found)))


if __name__ == "__main__":
    main()
