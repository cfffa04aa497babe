"""
PURE. The API server and what the caller may see of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.names import SYSTEM_NAMESPACE
from gpufence.shape import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.facts import Facts

LEAST: Final = (1, 30)
IMPERSONATING: Final = (1, 36)
INSTALL: Final = "apply the manifests of gpufence: kubectl apply -k deploy/base"

_SERVER = "API server"
_RIGHTS = "permissions"


def check_server(facts: Facts) -> Iterator[Finding]:
    yield _version(facts)
    if facts.system.hidden:
        yield unknown(_SERVER, facts.system.hidden, "ask an administrator to run this")
    elif facts.system.value is None:
        yield wrong(_SERVER, f"namespace {SYSTEM_NAMESPACE} does not exist", INSTALL)
    else:
        yield ok(_SERVER, f"namespace {SYSTEM_NAMESPACE} exists")


def check_rights(facts: Facts) -> Iterator[Finding]:
    """
    Say what the caller may not do that this plugin needs.
    """
    missing = [question for question, allowed in facts.rights.items() if not allowed]
    if missing:
        yield look(
            _RIGHTS,
            f"you may not {', '.join(missing)}: that part of the answers is missing",
            "bind roles gpufence-viewer (deploy/base/viewer), or have an administrator run this",
        )
    elif facts.rights:
        yield ok(_RIGHTS, "you may see everything this plugin asks for")


def _version(facts: Facts) -> Finding:
    said = facts.version.value
    text = "" if said is None else as_text(said.get("gitVersion"), "version.gitVersion")
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})", text, re.ASCII)
    if match is None:
        return unknown(_SERVER, f'its version "{text}" cannot be read', "see `kubectl version`")
    found = int(match[1]), int(match[2])
    if found < LEAST:
        return wrong(
            _SERVER,
            f"Kubernetes {text} is too old",
            "upgrade to 1.30 or later: matchConditions and admission policies are needed",
        )
    if found < IMPERSONATING:
        return look(
            _SERVER,
            f"Kubernetes {text}: agents cannot be confined to their own node before 1.36",
            "use the overlay with plain RBAC, and read there what it cannot promise",
        )
    return ok(_SERVER, f"Kubernetes {text}")
