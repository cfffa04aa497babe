"""
The plugin's manifest for krew: what it is, where its archives lie and by which digests they are
known.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

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
Where no file for your platform has its own Python, python3 on the PATH has to
be 3.11 or newer. `kubectl gpufence doctor` says what of gpufence is missing in
the cluster.
"""


@dataclass(frozen=True, slots=True)
class Archive:
    """What krew fetches on one platform; without an architecture, on all of a system."""

    name: str
    content: bytes
    system: str
    architecture: str = ""

    def platform(self, website: str) -> dict[str, Any]:
        machine = {"arch": self.architecture} if self.architecture else {}
        return {
            "selector": {"matchLabels": {"os": self.system, **machine}},
            "uri": f"{website}/{self.name}",
            "sha256": hashlib.sha256(self.content).hexdigest(),
            "bin": f"kubectl-{NAME}",
        }


def manifest(version: str, archives: Sequence[Archive], website: str) -> str:
    """
    Return the manifest of one release, whose files lie below `website`.

    krew takes the first archive that fits.
    """
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
            "platforms": [archive.platform(website) for archive in archives],
        },
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which people can read."""

    def represent_str(self, data: str) -> Any:  # noqa: ANN401 (a node of yaml, which has no types here)
        return self.represent_scalar(
            "tag:yaml.org,2002:str", data, style="|" if "\n" in data else None
        )


_Dumper.add_representer(str, _Dumper.represent_str)
