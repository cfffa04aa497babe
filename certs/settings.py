"""
What the certificates' program can be told by its environment.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from certs.material import Names, Patience
from certs.ports import Endpoint
from gpufence.errors import InvalidError, Problem
from gpufence.names import SYSTEM_NAMESPACE, WEBHOOK_SERVICE
from gpufence.settings import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE = "GPUFENCE_NAMESPACE"
SERVICE = "GPUFENCE_WEBHOOK_SERVICE"
ADDRESSES = "GPUFENCE_CERTS_ADDRESSES"
SETTLE = "GPUFENCE_CERTS_SETTLE_SECONDS"
WAIT = "GPUFENCE_CERTS_WAIT_SECONDS"
_PREFIX = "GPUFENCE_CERTS_"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
HELP = f"""\
environment:
  {NAMESPACE:30} where the Secrets and the Service are (default {SYSTEM_NAMESPACE})
  {SERVICE:30} name of the webhook's Service (default {WEBHOOK_SERVICE})
  {ADDRESSES:30} IP addresses the leaf also answers to, comma-separated (default none)
  {SETTLE:30} what the API servers get to see a new CA (default 5)
  {WAIT:30} how long to wait for replicas to serve a new leaf (default 120)
  KUBECONFIG                     the cluster, outside of a pod
"""


@dataclass(frozen=True, slots=True)
class Settings:
    names: Names
    patience: Patience
    unknown: tuple[str, ...] = ()


def read_settings(environ: Mapping[str, str]) -> Settings:
    """
    Read all settings, or raise `SettingsError` with everything that is wrong with them.
    """
    reader, default = Reader(environ), Patience()
    settings = Settings(
        names=Names(
            service=reader.parsed(SERVICE, WEBHOOK_SERVICE, _label, WEBHOOK_SERVICE),
            namespace=reader.parsed(NAMESPACE, SYSTEM_NAMESPACE, _label, SYSTEM_NAMESPACE),
            addresses=reader.parsed(ADDRESSES, "", _addresses, ()),
        ),
        patience=Patience(
            settle_seconds=reader.seconds(SETTLE, default.settle_seconds, most=600),
            wait_seconds=reader.seconds(WAIT, default.wait_seconds, most=3600),
        ),
    )
    reader.check()
    return replace(settings, unknown=reader.unknown(_PREFIX))


def read_endpoints(text: str, field: str) -> tuple[Endpoint, ...]:
    """
    Read `host:port,host:port`, or raise `SettingsError` with everything that is wrong with it.
    """
    found: list[Endpoint] = []
    for item in Reader({field: text}).items(field):
        reader = Reader({field: item})
        host, port = reader.address(field, "10.0.0.7:8443")
        reader.check()
        found.append(Endpoint(host or "localhost", port))
    return tuple(found)


def _label(text: str, field: str) -> str:
    if _LABEL.fullmatch(text):
        return text
    remedy = "write lower-case letters, digits and dashes, at most 63"
    raise InvalidError(Problem(field, text, "is no name of Kubernetes", remedy))


def _addresses(text: str, field: str) -> tuple[str, ...]:
    # In the one spelling that certificates give back, or every run would see other names.
    return tuple(_address(item.strip(), field) for item in text.split(",") if item.strip())


def _address(text: str, field: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        remedy = "write addresses such as 10.0.0.7, separated by commas"
        raise InvalidError(Problem(field, text, "is no IP address", remedy)) from error
