"""
`doctor`: whether everything is installed, running and seen; what is wrong has its remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.doctor.findings import examine, findings_json, findings_lines, is_wrong
from kubectl_gpufence.doctor.read import read_installation

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output

_WELL, _WRONG = 0, 1


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Check everything; 1 where something is wrong.
    """
    findings = examine(read_installation(reader))
    if call.output == "json":
        output.json({"v": 1, "checks": findings_json(findings)})
    else:
        output.lines(findings_lines(findings, output.display))
    return _WRONG if is_wrong(findings) else _WELL
