"""
What a kubeconfig says, whoever has read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kube.credentials import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """
    One context of a kubeconfig, with embedded certificates already in files.
    """

    server: str
    credentials: Credentials
    token_file: Path | None
    headers: Mapping[str, str]
    ca_file: Path | None
    client_file: Path | None
    client_key_file: Path | None
    verify: bool
    server_name: str | None
    proxy: str | None
    namespace: str
