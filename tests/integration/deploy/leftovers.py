"""What an installation leaves that nobody has installed: programs have made it."""

import re
import shlex
from typing import Any

from gpufence import names
from gpufence.need.codec import need_configmap
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import listed
from tests.support.manifests import ROOT

_NODE = "uninstalled"


def left_by_programs(plane: ControlPlane) -> None:
    """Make what agents make while they run: what models have needed."""
    kept: dict[str, Any] = {"name": need_configmap(_NODE), "namespace": names.SYSTEM_NAMESPACE}
    kept["labels"] = {"app.kubernetes.io/name": names.NEED_LABEL}
    items: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept}]
    plane.kubectl("create", "-f", "-", stdin=listed(items))


def documented(beginning: str) -> list[str]:
    """Return the manual's command that begins so, without its first word."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"`{beginning}[^`]*`", page)
    assert found is not None
    return shlex.split(found.group().strip("`"))[1:]
