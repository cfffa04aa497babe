"""
The plugin's manifest for krew: what it is, where its archive lies and by which digest it is known.
"""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

NAME = "gpufence"
_DESCRIPTION = """\
GPUs that pods share have no fence between their memories. gpufence writes
limits into the frameworks' own settings, measures what every process holds,
and evicts who breaks his limit.

This plugin shows declared, injected and measured memory side by side, who
holds GPUs in vain, how much memory each model needs, why a pod has the
values it has, and whether everything is installed well.
"""
_CAVEATS = """\
It is a Python program without compiled parts: python3 on the PATH has to be
3.11 or newer. `kubectl gpufence doctor` says what of gpufence is missing in
the cluster.
"""


def manifest(version: str, archive: str, content: bytes, website: str) -> str:
    """
    Return the manifest of one release, whose files lie below `website`.
    """
    platform = {
        "selector": {
            "matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]
        },
        "uri": f"{website}/{archive}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bin": f"kubectl-{NAME}",
    }
    document = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "homepage": website,
            "shortDescription": "Fences for the memory of shared GPUs: who holds how much",
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": [platform],
        },
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """
    Writes texts of several lines as blocks, which people can read.
    """

    def represent_str(self, data: str) -> Any:  # noqa: ANN401 (a node of yaml, which has no types here)
        return self.represent_scalar(
            "tag:yaml.org,2002:str", data, style="|" if "\n" in data else None
        )


_Dumper.add_representer(str, _Dumper.represent_str)
