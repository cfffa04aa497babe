"""
Agents and a controller at addresses that somebody names, where they are no pods or the API server
cannot reach them.

GpufenceError
└── AddressError     nobody answers there as an agent or a controller would: name another address
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from gpufence.addresses import read_agents, read_url
from gpufence.errors import GpufenceError
from gpufence.text import printable
from kubectl_gpufence.options import AGENTS, CONTROLLER

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from http.client import HTTPResponse

    from kube import JsonObject

_MOST_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 2**16


class AddressError(GpufenceError):
    """Raised where an address does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class Direct:
    """The addresses of agents, by node, and that of the controller, empty without one."""

    agents: Mapping[str, str] = field(default_factory=dict)
    controller: str = ""

    def agent_pods(self) -> list[JsonObject]:
        """Return what stands for the agents' pods: each is called as its address."""
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return [
            {"metadata": {"name": url}, "spec": {"nodeName": node}, "status": ready}
            for node, url in self.agents.items()
        ]


def addresses(call: argparse.Namespace, environ: Mapping[str, str]) -> Direct:
    """
    Read what a call, or else the environment, says of addresses.

    Raises:
        InvalidError: one of them cannot be read.
    """
    said, variable = call.agents, environ.get(AGENTS, "")
    field_of = "--agents" if said else AGENTS
    listed = said or [item for item in variable.split(",") if item.strip()]
    controller, at = call.controller or "", "--controller"
    if not controller:
        controller, at = environ.get(CONTROLLER, ""), CONTROLLER
    return Direct(read_agents(listed, field_of), read_url(controller, at) if controller else "")


def page(url: str, timeout_seconds: float, query: Mapping[str, str | int] | None = None) -> str:
    """
    Read a page that stands at an address, past any proxy.

    Raises:
        AddressError: nobody answers there, or not with a page.
    """
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = f"{url}?{urlencode(query)}" if query else url
    try:
        until = time.monotonic() + timeout_seconds
        with direct.open(asked, timeout=timeout_seconds) as answer:
            return _read_until(answer, until).decode()
    except (OSError, HTTPException, ValueError) as error:
        raise AddressError(f"{printable(url)}: {printable(str(error))}") from error


def _read_until(answer: HTTPResponse, until: float) -> bytes:
    """Read an answer that may trickle: the socket's own timeout begins anew with each byte."""
    body = bytearray()
    while chunk := answer.read1(_CHUNK_BYTES):
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ValueError(f"the answer is longer than {_MOST_BYTES} bytes")
        if time.monotonic() > until:
            raise TimeoutError("the answer is still coming in")
    return bytes(body)
