"""
`doctor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.checkup import look_around
from kubectl_gpufence.doctor import examine, is_wrong, told, told_json

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.terminal import Terminal

_WELL, _WRONG = 0, 1


def run(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> int:
    """
    Check everything; 1 where something is wrong.
    """
    findings = examine(look_around(cluster))
    if call.output == "json":
        terminal.json({"v": 1, "checks": told_json(findings)})
    else:
        terminal.lines(told(findings, terminal.look))
    return _WRONG if is_wrong(findings) else _WELL
