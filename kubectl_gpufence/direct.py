"""
Agents and a controller at addresses that somebody names, where they are no pods or the API server
cannot reach them.

GpufenceError
└── AddressError     nobody answers there as an agent or a controller would: name another address
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpufence.addresses import read_agents, read_url
from gpufence.errors import GpufenceError
from gpufence.text import printable
from kube import KubeError, fetch_page
from kubectl_gpufence.options import AGENTS, CONTROLLER

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from kube import JsonObject

_MOST_BYTES: Final = 64 * 2**20


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
    try:
        return fetch_page(url, timeout_seconds, _MOST_BYTES, query)
    except KubeError as error:
        raise AddressError(printable(str(error))) from error
