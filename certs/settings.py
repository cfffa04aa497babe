"""What the certificates' program can be told by its environment."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final

from certs.material import ServiceNames, WaitSettings
from certs.ports import Replica
from gpufence.errors import InvalidError, Problem, SettingsError
from gpufence.names import SYSTEM_NAMESPACE, WEBHOOK_SERVICE
from gpufence.setting_kinds import parsed, read_address, split_items
from gpufence.settings import help_text, part, setting

PREFIX: Final = "GPUFENCE_CERTS_"
_KUBECONFIG = "  KUBECONFIG                     the cluster, outside of a pod\n"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def _label(text: str, variable: str) -> str:
    if _LABEL.fullmatch(text):
        return text
    remedy = "write lower-case letters, digits and dashes, at most 63"
    raise InvalidError(Problem(variable, text, "is no name of Kubernetes", remedy))


def _addresses(text: str, variable: str) -> tuple[str, ...]:
    # In the one spelling that certificates give back, or every run would see other names.
    return tuple(_address(item, variable) for item in split_items(text))


def _address(text: str, variable: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        remedy = "write addresses such as 10.0.0.7, separated by commas"
        raise InvalidError(Problem(variable, text, "is no IP address", remedy)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class CertsSettings:
    namespace: str = field(
        default=SYSTEM_NAMESPACE,
        metadata=setting(
            "GPUFENCE_NAMESPACE", "where the Secrets and the Service are", kind=parsed(_label)
        ),
    )
    service: str = field(
        default=WEBHOOK_SERVICE,
        metadata=setting(
            "GPUFENCE_WEBHOOK_SERVICE", "name of the webhook's Service", kind=parsed(_label)
        ),
    )
    addresses: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            "GPUFENCE_CERTS_ADDRESSES",
            "IP addresses the leaf also answers to, comma-separated",
            kind=parsed(_addresses, ",".join),
            unset="none",
        ),
    )
    patience: WaitSettings = field(default_factory=WaitSettings, metadata=part())

    @property
    def names(self) -> ServiceNames:
        return ServiceNames(self.service, self.namespace, self.addresses)


def help_epilog() -> str:
    """Return what `--help` prints about the environment."""
    return help_text(CertsSettings, "environment:") + _KUBECONFIG


def read_endpoints(text: str, option: str) -> tuple[Replica, ...]:
    """Read `host:port,host:port`, or raise `SettingsError` for the first that is none."""
    try:
        addresses = [read_address(item, option, "10.0.0.7:8443") for item in split_items(text)]
    except InvalidError as error:
        raise SettingsError([error.problem]) from error
    return tuple(Replica(host or "localhost", port) for host, port in addresses)
