#!/usr/bin/env python3
"""
List what an image holds, as CycloneDX: the interpreter, Python's packages and Debian's.

Runs inside the image with nothing but the standard library, as the last step of its making.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

HOME = Path("/opt/gpufence")


def bill(program: str, site: list[str]) -> dict[str, object]:
    """Return the bill of materials of an image with one program."""
    components = [
        _component("generic", "python", platform.python_version()),
        *_python_packages(site),
        *_debian_packages(),
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": f"gpufence/{program}"}},
        "components": sorted(components, key=lambda each: each["purl"]),
    }


def _python_packages(site: list[str]) -> list[dict[str, str]]:
    found = distributions(path=site)
    return [_component("pypi", each.metadata["Name"].lower(), each.version) for each in found]


def _debian_packages() -> list[dict[str, str]]:
    query = shutil.which("dpkg-query")
    if query is None:
        return []
    command = [query, "--show", "--showformat", "${Package} ${Version}\\n"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_component("deb/debian", *line.split()) for line in listed.splitlines()]


def _component(kind: str, name: str, version: str) -> dict[str, str]:
    purl = f"pkg:{kind}/{name}@{version}"
    return {"type": "library", "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    folders = [str(path) for path in HOME.glob("lib/python3*/site-packages")]
    json.dump(bill(sys.argv[1], folders), sys.stdout, indent=1)
