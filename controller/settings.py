"""What an operator can set about the controller."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controller.model import ReleaseRules
from gpufence import names
from gpufence.setting_kinds import ADDRESS, NAMES, Kind, choice, read_agents
from gpufence.settings import HELP_URL, UnitSettings, part, setting
from service.logs import LEVELS

if TYPE_CHECKING:
    from gpufence.setting_kinds import Row

STATUS_LISTEN: Final = "GPUFENCE_STATUS_LISTEN"
AGENTS: Final = "GPUFENCE_AGENTS"
IDENTITY: Final = "GPUFENCE_IDENTITY"


def write_agents(agents: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{node}={url}" for node, url in agents)


def _read_agents(text: str, row: Row) -> tuple[tuple[str, str], ...]:
    return tuple(read_agents(text.split(","), row.variable, {"http"}).items())


_AGENTS: Final = Kind(_read_agents, write_agents)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Who of several acts: the timings that Kubernetes' own controllers have."""

    held_seconds: float = field(
        default=15.0,
        metadata=setting(
            "GPUFENCE_LEASE_SECONDS",
            "lease duration",
            least=1,
            most=600,
        ),
    )
    renew_within_seconds: float = field(
        default=10.0,
        metadata=setting(
            "GPUFENCE_LEASE_RENEW_SECONDS",
            "renew deadline: how long after its last renewal the holder acts; less than the "
            "lease duration",
            least=0.5,
            most=600,
        ),
    )
    retry_seconds: float = field(
        default=2.0,
        metadata=setting(
            "GPUFENCE_LEASE_RETRY_SECONDS",
            "interval at which the Lease is renewed, or tried",
            least=0.1,
            most=60,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """All but what the keepers have."""

    status_listen: tuple[str, int] = field(
        default=("", 8080),
        metadata=setting(
            STATUS_LISTEN,
            "host:port for `/healthz`, `/metrics`, `/v1/owners` and `/v1/activity/`, plain; no "
            "host means every interface, port 0 takes a free one and logs it",
            kind=ADDRESS,
        ),
    )
    log_level: str = field(
        default="info",
        metadata=setting(
            "GPUFENCE_LOG_LEVEL", "`debug`, `info`, `warning` or `error`", kind=choice(LEVELS)
        ),
    )
    identity: str = field(
        default="",
        metadata=setting(
            IDENTITY,
            "identity of this replica in the Lease; the manifest takes the pod's name",
            unset="the machine's name and a number",
        ),
    )
    namespace: str = field(
        default=names.SYSTEM_NAMESPACE,
        metadata=setting(
            "GPUFENCE_NAMESPACE",
            f"where the kill switch is, the ConfigMap `{names.POLICY_CONFIGMAP}`, and the Lease "
            f"`{names.CONTROLLER}` and the agents; the manifest takes the pod's namespace",
        ),
    )
    exempt_namespaces: frozenset[str] = field(
        default=frozenset(names.EXEMPT_NAMESPACES),
        metadata=setting(
            "GPUFENCE_EXEMPT_NAMESPACES",
            "namespaces, comma-separated, in which no owner is released, whatever their labels "
            "say, beside `GPUFENCE_NAMESPACE`",
            kind=NAMES,
        ),
    )
    agents: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=setting(
            AGENTS,
            "addresses of agents that are not pods of this cluster: `NODE=URL,...`",
            kind=_AGENTS,
            unset="the agents' pods",
        ),
    )
    pass_seconds: float = field(
        default=2.0,
        metadata=setting(
            "GPUFENCE_PASS_SECONDS",
            "interval between two passes over all owners",
            least=0.1,
            most=60,
        ),
    )
    kinds_seconds: float = field(
        default=120.0,
        metadata=setting(
            "GPUFENCE_KINDS_SECONDS",
            "interval at which new kinds of owners and autoscalers are discovered",
            least=0.2,
            most=3600,
        ),
    )
    agent_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_AGENT_SECONDS", "the longest wait for an agent's answer", least=0.1, most=60
        ),
    )
    request_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_REQUEST_SECONDS",
            "timeout of a request to the API server for an act or the Lease; less than "
            "`GPUFENCE_LEASE_RENEW_SECONDS`",
            least=0.1,
            most=60,
        ),
    )
    help_url: str = field(default="", metadata=HELP_URL)
    lease: LeaseSettings = field(default_factory=LeaseSettings, metadata=part("Leader election"))
    rules: ReleaseRules = field(
        default_factory=ReleaseRules, metadata=part("When an owner is released")
    )
    units: UnitSettings = field(default_factory=UnitSettings, metadata=part())

    @property
    def holder(self) -> str:
        return self.identity or socket.gethostname()
