"""
What the certificates' program can be told by its environment.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.material import Names
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
    settle_seconds: float
    wait_seconds: float


def read_settings(environ: Mapping[str, str]) -> Settings:
    """
    Read all settings, or raise `SettingsError` with everything that is wrong with them.
    """
    reader = Reader(environ)
    settings = Settings(
        names=Names(
            service=reader.text(SERVICE, WEBHOOK_SERVICE),
            namespace=reader.text(NAMESPACE, SYSTEM_NAMESPACE),
            addresses=reader.parsed(ADDRESSES, "", _addresses, ()),
        ),
        settle_seconds=reader.seconds(SETTLE, 5.0, most=600),
        wait_seconds=reader.seconds(WAIT, 120.0, most=3600),
    )
    reader.check()
    return settings


def read_endpoints(text: str, field: str) -> tuple[tuple[str, int], ...]:
    """
    Read `host:port,host:port`.
    """
    reader = Reader({field: text})
    return tuple(Reader({field: item}).address(field, ":443") for item in reader.items(field))


def _addresses(text: str, field: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(",") if item.strip())
    for item in items:
        try:
            ipaddress.ip_address(item)
        except ValueError as error:
            remedy = "write addresses such as 10.0.0.7, separated by commas"
            raise InvalidError(Problem(field, item, "is no IP address", remedy)) from error
    return items
