"""
What an operator can set about the agent, each with its unit and its reason.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final

from agent.events import Damping
from agent.model.policy import Policy
from agent.numbers import DAMPING, POLICY, SAMPLER, help_of, read_rows
from agent.nvml.settings import SamplerSettings
from gpufence import names
from gpufence.dialects import Units
from gpufence.errors import InvalidError, Problem
from gpufence.quantity import UNIT_BYTES
from service.logs import LEVELS

if TYPE_CHECKING:
    from agent.reader import Reader

NODE: Final = "GPUFENCE_NODE"
STATUS_LISTEN: Final = "GPUFENCE_STATUS_LISTEN"
CLUSTER: Final = "GPUFENCE_CLUSTER"
LOG_LEVEL: Final = "GPUFENCE_LOG_LEVEL"
PROC: Final = "GPUFENCE_PROC"
IMPERSONATION: Final = "GPUFENCE_IMPERSONATION"
NAMESPACE: Final = "GPUFENCE_NAMESPACE"
EXEMPT_NAMESPACES: Final = "GPUFENCE_EXEMPT_NAMESPACES"
UNMEASURED_SECONDS: Final = "GPUFENCE_UNMEASURED_SECONDS"

CLUSTERS: Final = ("auto", "none")
IMPERSONATIONS: Final = ("auto", "on", "off")
_EXEMPT = ",".join(names.EXEMPT_NAMESPACES)
_MOST_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """
    All of it. `node` is empty where no command needs to know.
    """

    node: str = ""
    """
    The Node object that this machine is; the manifest takes it from spec.nodeName.
    """

    status_listen: tuple[str, int] = ("", 8080)
    """
    Where kubelet, Prometheus and the plugin ask, without TLS; an empty host is every interface.
    """

    cluster: str = "auto"
    """
    auto: the cluster of this pod, or of the kubeconfig; none: no cluster, only measuring.
    """

    log_level: str = "info"

    proc: str = "/proc"
    """
    Where processes are looked up; with hostPID the container's own /proc shows the host's.
    """

    impersonation: str = "auto"
    """
    Whether the agent acts as its own node, which takes Kubernetes 1.36.
    """

    namespace: str = names.SYSTEM_NAMESPACE
    """
    Where the kill switch is, the ConfigMap gpufence-policy.
    """

    exempt_namespaces: frozenset[str] = frozenset(names.EXEMPT_NAMESPACES)
    """
    Namespaces in which nobody is ever evicted, whatever their labels say.
    """

    unmeasured_seconds: float = 15.0
    """
    How long a card may go unread before the Node says so.
    """

    units: Units = field(default_factory=Units)
    """
    What gpushare's and Volcano's numbers mean where the Node's own figures leave it open.
    """

    policy: Policy = field(default_factory=Policy)
    damping: Damping = field(default_factory=Damping)
    sampler: SamplerSettings = field(default_factory=SamplerSettings)

    def shown(self) -> dict[str, object]:
        """
        Return all of it for the log.
        """
        said = asdict(self)
        said["exempt_namespaces"] = sorted(self.exempt_namespaces)
        host, port = self.status_listen
        said["status_listen"] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return said


HELP: Final = {
    NODE: "name of this Node (required by run and check)",
    STATUS_LISTEN: "host:port for /healthz, /metrics and /v1/snapshot, plain (:8080)",
    CLUSTER: "auto: this pod's cluster, or KUBECONFIG; none: only measure (auto)",
    LOG_LEVEL: "debug, info, warning or error (info)",
    PROC: "where processes are looked up (/proc)",
    IMPERSONATION: "act as the own Node: auto, on or off (auto)",
    NAMESPACE: f"where the ConfigMap {names.POLICY_CONFIGMAP} is ({names.SYSTEM_NAMESPACE})",
    EXEMPT_NAMESPACES: f"where nobody is ever evicted ({_EXEMPT})",
    names.GPUSHARE_UNIT: "unit of aliyun.com/gpu-mem where the Node leaves it open (GiB)",
    names.VOLCANO_FACTOR: "--gpu-memory-factor of Volcano's device plugin (1)",
    UNMEASURED_SECONDS: "how long a card may go unread before the Node says so (15)",
}
POLICY_HELP: Final = help_of(POLICY, Policy())
DAMPING_HELP: Final = help_of(DAMPING, Damping())
SAMPLER_HELP: Final = help_of(SAMPLER, SamplerSettings())


def read_agent_settings(reader: Reader, *, needs_node: bool = False) -> AgentSettings:
    """
    Read every setting; the reader keeps what is wrong for `check`.
    """
    default = AgentSettings()
    policy = read_rows(reader, POLICY, default.policy)
    sampler = read_rows(reader, SAMPLER, default.sampler)
    return AgentSettings(
        node=_node(reader, needs_node=needs_node),
        status_listen=reader.address(STATUS_LISTEN, ":8080"),
        cluster=reader.choice(CLUSTER, default.cluster, CLUSTERS),
        log_level=reader.choice(LOG_LEVEL, default.log_level, LEVELS),
        proc=reader.text(PROC, default.proc),
        impersonation=reader.choice(IMPERSONATION, default.impersonation, IMPERSONATIONS),
        namespace=reader.text(NAMESPACE, default.namespace),
        exempt_namespaces=frozenset(reader.items(EXEMPT_NAMESPACES, _EXEMPT)),
        unmeasured_seconds=reader.seconds(
            UNMEASURED_SECONDS, default.unmeasured_seconds, most=3600.0
        ),
        units=_units(reader),
        policy=policy,
        damping=read_rows(reader, DAMPING, default.damping),
        sampler=replace(sampler, interval_seconds=policy.interval_seconds),
    )


def _node(reader: Reader, *, needs_node: bool) -> str:
    """
    Read the node's name; a missing one is a mistake only where it is needed.
    """
    if not needs_node:
        return reader.text(NODE, "")
    return reader.parsed(NODE, "", _name, "")


def _name(text: str, variable: str) -> str:
    if text and len(text) <= _MOST_NAME and "/" not in text:
        return text
    remedy = "set it to the Node's name; the manifest takes it from the field spec.nodeName"
    raise InvalidError(Problem(variable, text, "is no name of a Node", remedy))


def _units(reader: Reader) -> Units:
    unit = reader.choice(names.GPUSHARE_UNIT, "GiB", tuple(UNIT_BYTES))
    factor = reader.integer(names.VOLCANO_FACTOR, 1, least=1, most=2**20)
    return Units(gpushare_bytes=UNIT_BYTES[unit], volcano_factor=factor)
