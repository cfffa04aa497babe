"""
What an operator can set about the server, each with its unit and its reason.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpufence import names
from service.logs import LEVELS

if TYPE_CHECKING:
    from gpufence.settings import Reader

LISTEN: Final = "GPUFENCE_LISTEN"
STATUS_LISTEN: Final = "GPUFENCE_STATUS_LISTEN"
TLS_DIR: Final = "GPUFENCE_TLS_DIR"
TLS_POLL_SECONDS: Final = "GPUFENCE_TLS_POLL_SECONDS"
CLUSTER: Final = "GPUFENCE_CLUSTER"
LOG_LEVEL: Final = "GPUFENCE_LOG_LEVEL"
DRAIN_SECONDS: Final = "GPUFENCE_DRAIN_SECONDS"
API_DEADLINE_SECONDS: Final = "GPUFENCE_API_DEADLINE_SECONDS"

CLUSTERS = ("auto", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """
    How to serve; what to write into pods is `webhook.policy`.
    """

    listen: tuple[str, int] = ("", 8443)
    """
    Where the API server calls, with TLS; an empty host is every interface.
    """

    status_listen: tuple[str, int] = ("", 8080)
    """
    Where probes and Prometheus ask, without TLS.
    """

    tls_dir: Path = Path("/tls")
    """
    The folder of tls.crt and tls.key, watched while serving.
    """

    tls_poll_seconds: float = 1.0
    """
    How often that folder is looked at; a mounted Secret tells nobody when it changes.
    """

    cluster: str = "auto"
    """
    auto: the cluster of this pod, or of the kubeconfig; none: no cluster, for development.
    """

    log_level: str = "info"

    drain_seconds: float = 15.0
    """
    How long to go on serving after SIGTERM: endpoints take a while to forget a pod.
    """

    api_deadline_seconds: float = 0.8
    """
    How long one admission may wait for the API server; below the binding hook's timeout of 1 s.
    """

    def shown(self) -> dict[str, object]:
        """
        Return all of it for the log.
        """
        return {name: _shown(value) for name, value in asdict(self).items()}


HELP: Final = {
    LISTEN: "host:port for the API server, with TLS (:8443)",
    STATUS_LISTEN: "host:port for /healthz, /readyz and /metrics, plain (:8080)",
    TLS_DIR: "folder of tls.crt and tls.key, watched and swapped while serving (/tls)",
    TLS_POLL_SECONDS: "seconds between two looks at that folder (1)",
    CLUSTER: "auto: this pod's cluster, or KUBECONFIG; none: no cluster at all (auto)",
    LOG_LEVEL: "debug, info, warning or error (info)",
    DRAIN_SECONDS: "seconds to go on serving after SIGTERM (15)",
    API_DEADLINE_SECONDS: "seconds one admission may wait for the API server (0.8)",
}

POLICY_HELP: Final = {
    names.DEFAULT_CARD: "memory of a card where no node tells, such as 15360Mi (unknown)",
    names.DEFAULT_CAPABILITY: "that card's compute capability, such as 7.5 (unknown)",
    names.GPUSHARE_UNIT: "unit of aliyun.com/gpu-mem until a node tells, GiB or MiB (GiB)",
    names.VOLCANO_FACTOR: "--gpu-memory-factor of Volcano's device plugin (1)",
    names.RESERVE: "replaces the table of context reserves, such as 700Mi (the table)",
    f"{names.SCHEDULER_PREFIX}<DIALECT>": "schedulerName for the pods of GPUSHARE, VOLCANO, "
    "VOLCANO_VGPU, HAMI, KAI, NVIDIA, MIG or ANNOTATION",
    names.TOLERATIONS: "key=value:Effect,... that GPU pods get besides nvidia.com/gpu (none)",
}


def read_server_settings(reader: Reader) -> ServerSettings:
    """
    Read every setting of the server; the reader keeps what is wrong for `check`.
    """
    default = ServerSettings()
    return ServerSettings(
        listen=reader.address(LISTEN, ":8443"),
        status_listen=reader.address(STATUS_LISTEN, ":8080"),
        tls_dir=Path(reader.text(TLS_DIR, str(default.tls_dir))),
        tls_poll_seconds=reader.seconds(
            TLS_POLL_SECONDS, default.tls_poll_seconds, least=0.05, most=60.0
        ),
        cluster=reader.choice(CLUSTER, default.cluster, CLUSTERS),
        log_level=reader.choice(LOG_LEVEL, default.log_level, LEVELS),
        drain_seconds=reader.seconds(DRAIN_SECONDS, default.drain_seconds, most=600.0),
        api_deadline_seconds=reader.seconds(
            API_DEADLINE_SECONDS, default.api_deadline_seconds, least=0.05, most=30.0
        ),
    )


def _shown(value: object) -> object:
    if isinstance(value, tuple):
        host, port = value
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(value) if isinstance(value, Path) else value
