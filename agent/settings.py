"""What an operator can set about the agent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final

from agent.events.episodes import Damping
from agent.model.policy import EvictionPolicy
from agent.nvml.settings import SamplerSettings
from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.setting_kinds import ADDRESS, NAMES, choice, parsed
from gpufence.settings import HELP_URL, UnitSettings, part, read_settings, setting
from service.logs import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE: Final = "GPUFENCE_NODE"
STATUS_LISTEN: Final = "GPUFENCE_STATUS_LISTEN"

_MOST_NAME = 253


def _name(text: str, variable: str) -> str:
    if text and len(text) <= _MOST_NAME and "/" not in text:
        return text
    remedy = "set it to the Node's name; the manifest takes it from the field spec.nodeName"
    raise InvalidError(Problem(variable, text, "is no name of a Node", remedy))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """All of it. `node` is empty where no command needs to know."""

    node: str = field(
        default="",
        metadata=setting(
            NODE,
            "name of this Node; the manifest takes it from `spec.nodeName`. `run` and `check` do "
            "not begin without it",
            kind=parsed(_name),
            unset="required",
        ),
    )
    status_listen: tuple[str, int] = field(
        default=("", 8080),
        metadata=setting(
            STATUS_LISTEN,
            "host:port for `/healthz`, `/metrics`, `/v1/snapshot` and `/v1/need`, plain; no host "
            "means every interface, port 0 takes a free one and logs it",
            kind=ADDRESS,
        ),
    )
    cluster: str = field(
        default="auto",
        metadata=setting(
            "GPUFENCE_CLUSTER",
            "`auto`: the cluster of this pod, else of `KUBECONFIG`, else of `~/.kube/config`; "
            "`none`: only measure and show",
            kind=choice(("auto", "none")),
        ),
    )
    log_level: str = field(
        default="info",
        metadata=setting(
            "GPUFENCE_LOG_LEVEL", "`debug`, `info`, `warning` or `error`", kind=choice(LEVELS)
        ),
    )
    proc: str = field(
        default="/proc",
        metadata=setting(
            "GPUFENCE_PROC",
            "where processes are looked up; with `hostPID` the container's own `/proc` shows the "
            "host's",
        ),
    )
    impersonation: str = field(
        default="auto",
        metadata=setting(
            "GPUFENCE_IMPERSONATION",
            "whether to act as the agent's own Node: `auto` (where the API server lets it, "
            "Kubernetes 1.36 and later), `on`, `off` (its own account, by rights that reach every "
            "node)",
            kind=choice(("auto", "on", "off")),
        ),
    )
    namespace: str = field(
        default=names.SYSTEM_NAMESPACE,
        metadata=setting(
            "GPUFENCE_NAMESPACE",
            f"where the kill switch is, the ConfigMap `{names.POLICY_CONFIGMAP}`, and where what "
            "models have needed is kept; the manifest takes the pod's namespace",
        ),
    )
    exempt_namespaces: frozenset[str] = field(
        default=frozenset(names.EXEMPT_NAMESPACES),
        metadata=setting(
            "GPUFENCE_EXEMPT_NAMESPACES",
            "namespaces, comma-separated, in which no pod is evicted, whatever their labels "
            "say, beside `GPUFENCE_NAMESPACE`",
            kind=NAMES,
        ),
    )
    units: UnitSettings = field(default_factory=UnitSettings, metadata=part())
    unmeasured_seconds: float = field(
        default=15.0,
        metadata=setting(
            "GPUFENCE_UNMEASURED_SECONDS",
            "how long a card may go unread before the Node gets the Event `NVMLUnavailable`",
            most=3600,
        ),
    )
    policy: EvictionPolicy = field(
        default_factory=EvictionPolicy, metadata=part("When a pod is evicted")
    )
    help_url: str = field(default="", metadata=HELP_URL)
    damping: Damping = field(default_factory=Damping, metadata=part("Events"))
    sampler: SamplerSettings = field(
        default_factory=SamplerSettings, metadata=part("How the cards are measured")
    )


def read_agent_settings(
    variables: Mapping[str, str],
    settings: type[AgentSettings] = AgentSettings,
    *,
    needs_node: bool = False,
) -> AgentSettings:
    """
    Read every setting.

    Raises:
        SettingsError: with everything that is wrong.
    """
    read = read_settings(settings, variables, required=(NODE,) if needs_node else ())
    others = [getattr(read, item.name) for item in fields(read) if item.name != "sampler"]
    work = min(getattr(each, "work_seconds", math.inf) for each in others)
    sampler = replace(
        read.sampler, interval_seconds=read.policy.interval_seconds, work_seconds=work
    )
    return replace(read, sampler=sampler)
