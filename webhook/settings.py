"""What an operator can set: how to serve, and what holds for the pods of every namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.cards import LARGEST_MADE, read_capability
from gpufence.dialects import SPECS, Units
from gpufence.errors import InvalidError, Problem
from gpufence.reserves import Reserves, read_reserves, write_reserves
from gpufence.setting_kinds import ADDRESS, choice, converted, parsed
from gpufence.settings import HELP_URL, UnitSettings, part, setting
from service.logs import LEVELS
from webhook.policy import DriverLimits, WebhookPolicy, toleration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.policy import Toleration

LISTEN: Final = "GPUFENCE_LISTEN"
STATUS_LISTEN: Final = "GPUFENCE_STATUS_LISTEN"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_TAINT = re.compile(rf"((?:[a-z0-9.-]+/)?{_NAME})(?:=({_NAME})?)?(?::([A-Za-z]+))?")
_SCHEDULER = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    listen: tuple[str, int] = field(
        default=("", 8443),
        metadata=setting(
            LISTEN,
            "host:port for the API server, with TLS; no host means every interface, `[::1]:8443` "
            "is IPv6, port 0 takes a free one and logs it",
            kind=ADDRESS,
        ),
    )
    status_listen: tuple[str, int] = field(
        default=("", 8080),
        metadata=setting(
            STATUS_LISTEN,
            "host:port for `/healthz`, `/readyz` and `/metrics`, plain",
            kind=ADDRESS,
        ),
    )
    tls_dir: Path = field(
        default=Path("/tls"),
        metadata=setting(
            "GPUFENCE_TLS_DIR",
            "folder of `tls.crt` (the chain) and `tls.key`, watched and swapped while serving",
            kind=converted(Path),
        ),
    )
    client_ca: Path | None = field(
        default=None,
        metadata=setting(
            "GPUFENCE_CLIENT_CA",
            "file with the CA in PEM that the API server's client certificate has to be signed by, "
            "watched like the folder; needs an API server that shows one (docs/install.md)",
            kind=converted(Path),
            unset="no certificate is required",
        ),
    )
    # A mounted Secret tells nobody when it changes.
    tls_poll_seconds: float = field(
        default=1.0,
        metadata=setting(
            "GPUFENCE_TLS_POLL_SECONDS",
            "seconds between two looks at that folder, 0.05 to 60",
            least=0.05,
            most=60,
        ),
    )
    cluster: str = field(
        default="auto",
        metadata=setting(
            "GPUFENCE_CLUSTER",
            "`auto`: the cluster of this pod, else of `KUBECONFIG`, else of `~/.kube/config`; "
            "`none`: no cluster, for development and benchmarks",
            kind=choice(("auto", "none")),
        ),
    )
    namespace: str = field(
        default=names.SYSTEM_NAMESPACE,
        metadata=setting(
            "GPUFENCE_NAMESPACE",
            f"where the ConfigMap `{names.QUOTA_LEDGER}` is (component `quota`)",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=setting(
            "GPUFENCE_LOG_LEVEL",
            "`debug`, `info`, `warning` or `error`; below `info` there is no line for each request",
            kind=choice(LEVELS),
        ),
    )
    # Endpoints take a while to forget a pod.
    drain_seconds: float = field(
        default=15.0,
        metadata=setting(
            "GPUFENCE_DRAIN_SECONDS",
            "seconds to go on serving after SIGTERM, not ready, each answer closing its "
            "connection; keep it and 5 s more below the pod's `terminationGracePeriodSeconds`",
            most=600,
        ),
    )
    api_deadline_seconds: float = field(
        default=0.8,
        metadata=setting(
            "GPUFENCE_API_DEADLINE_SECONDS",
            "seconds one admission may wait for the API server; keep it below the 1 s that a "
            "binding may take",
            least=0.05,
            most=30,
        ),
    )


def _scheduler(text: str, variable: str) -> str:
    if _SCHEDULER.fullmatch(text):
        return text
    remedy = f"write a schedulerName such as volcano, or {names.DEFAULT_SCHEDULER} for no change"
    raise InvalidError(Problem(variable, text, "is no name of a scheduler", remedy))


def card_capability(text: str, variable: str) -> tuple[int, int]:
    """Read a card's compute capability. Raises InvalidError that names the variable."""
    capability = read_capability(text)
    if capability is None:
        remedy = "write major.minor, such as 7.5"
        raise InvalidError(Problem(variable, text, "is no compute capability", remedy))
    return capability


def _tolerations(text: str, variable: str) -> tuple[Toleration, ...]:
    """Read `key`, `key=value` and `key=value:Effect`, separated by commas."""
    items = [item.strip() for item in text.split(",")]
    return tuple(_toleration(item, variable) for item in items if item)


def _toleration(text: str, variable: str) -> Toleration:
    match = _TAINT.fullmatch(text)
    if match and (match[3] is None or match[3] in _EFFECTS):
        return toleration(match[1], match[2] or "", match[3] or "")
    remedy = f"write key=value:Effect, where Effect is one of {', '.join(_EFFECTS)}"
    raise InvalidError(Problem(variable, text, "is no toleration", remedy))


CAPABILITY: Final = parsed(card_capability, lambda value: "{}.{}".format(*value))
_RESERVES: Final = parsed(read_reserves, write_reserves)
_TOLERATIONS: Final = parsed(
    _tolerations,
    lambda values: ",".join(
        f"{item['key']}={item.get('value', '')}:{item.get('effect', '')}" for item in values
    ),
)


def _schedulers() -> dict[str, str]:
    return {spec.setting: spec.scheduler or names.DEFAULT_SCHEDULER for spec in SPECS}


def _usual_schedulers() -> str:
    named = ", ".join(
        f"`{spec.scheduler}` for `{spec.setting}`" for spec in SPECS if spec.scheduler
    )
    return f"{named}, else `{names.DEFAULT_SCHEDULER}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """What `rewrite` on the command line obeys, too."""

    card_bytes: int | None = field(
        default=None,
        metadata=setting(
            names.DEFAULT_CARD,
            "memory of a card where no node states it, such as `15360Mi`",
            unset="unknown",
        ),
    )
    largest_card_bytes: int = field(
        default=LARGEST_MADE,
        metadata=setting(
            names.LARGEST_CARD,
            "largest card assumed where a node does not state its size, such as `80Gi`: "
            "fractions are computed for it",
        ),
    )
    compute_capability: tuple[int, int] | None = field(
        default=None,
        metadata=setting(
            names.DEFAULT_CAPABILITY,
            "that card's compute capability, such as `7.5`",
            kind=CAPABILITY,
            unset="unknown",
        ),
    )
    units: UnitSettings = field(default_factory=UnitSettings, metadata=part())
    reserves: Reserves = field(
        default=Reserves(),
        metadata=setting(
            names.RESERVE,
            "`700Mi` replaces the whole table of context reserves; `Tesla T4=300Mi,...`, as "
            "`gpufence-agent verify` prints it, what it has for cards of that model, a MIG "
            "instance's with its profile; both in one list: that amount for all other cards",
            kind=_RESERVES,
            unset="the table",
        ),
    )
    schedulers: Mapping[str, str] = field(
        default_factory=_schedulers,
        metadata=setting(
            f"{names.SCHEDULER_PREFIX}<DIALECT>",
            f"schedulerName for pods of {', '.join(f'`{spec.setting}`' for spec in SPECS)} that "
            f"name none; `{names.DEFAULT_SCHEDULER}` leaves it alone",
            kind=parsed(_scheduler),
            unset=_usual_schedulers(),
        ),
    )
    tolerations: tuple[Toleration, ...] = field(
        default=(),
        metadata=setting(
            names.TOLERATIONS,
            "`key=value:Effect,...` that GPU pods get besides the one for `nvidia.com/gpu`",
            kind=_TOLERATIONS,
            unset="none",
        ),
    )

    help_url: str = field(default="", metadata=HELP_URL)
    driver_limits: DriverLimits = field(
        default=DriverLimits.OFF,
        metadata=setting(
            names.DRIVER_SETTING,
            "`on`: the driver holds containers to their limit, and every GPU node, present or "
            "future, has NVIDIA's toolkit >= 1.20.1, a driver >= 615, cgroup v2 and no MIG; "
            f"`labelled`: nodes with the label `{names.DRIVER_LIMITS}=true` have, and pods that "
            "are held so require it; `auto`: those have, and pods that can get no other node are "
            "held; `off`: no such variable is written (docs/driver-limits.md)",
        ),
    )

    def policy(self, hook_source: str = "") -> WebhookPolicy:
        units = Units(
            gpushare_bytes=self.units.gpushare_bytes, volcano_factor=self.units.volcano_factor
        )
        return WebhookPolicy(
            default=CandidateCard(units, self.card_bytes or None, self.compute_capability),
            scheduler_names={
                spec.name: self.schedulers[spec.setting]
                for spec in SPECS
                if self.schedulers[spec.setting] != names.DEFAULT_SCHEDULER
            },
            tolerations=self.tolerations,
            reserve_override=self.reserves.every,
            measured=self.reserves.by_model,
            hook_source=hook_source,
            largest_bytes=self.largest_card_bytes or LARGEST_MADE,
            driver_limits=self.driver_limits,
            help_url=self.help_url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    server: ServerSettings = field(default_factory=ServerSettings, metadata=part("The server:"))
    pods: PodSettings = field(
        default_factory=PodSettings,
        metadata=part("What is written into pods, by `rewrite` too:"),
    )
