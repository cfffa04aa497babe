"""
PURE. What is said about a container's settings, in sentences for the person who wrote the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.errors import shown
from gpufence.quantity import write_mebibytes

if TYPE_CHECKING:
    from webhook.frameworks.figures import Figures
    from webhook.frameworks.servers import Launch
    from webhook.frameworks.settle import Settled
    from webhook.frameworks.table import Row

HIDDEN = "comes from elsewhere (valueFrom or $(VAR)); left as it is, uncapped"
ENV_FROM = "envFrom may set variables unseen here; those of gpufence win over it"
NO_ARGUMENT = f"{names.ARGS}: no card is known to reckon with, so no argument is appended"
NO_SERVER = f"{names.ARGS}: no known server is started here; name it with {names.FRAMEWORK}"


def lowered(row: Row, settled: Settled, user: str, *, label: str = "") -> str:
    """
    Say that ours counts and not what the user wrote.
    """
    said = f"{label or row.env} {shown(user)}"
    figures = settled.figures
    if figures is None and row.fixed:
        return f"{said} would take the whole card; {shown(row.fixed)} counts"
    if figures is None:
        other = names.XLA_NEW_FRACTION if row.env == names.XLA_FRACTION else names.XLA_FRACTION
        return f"{said} beside {other} sends JAX to the CPU; only {other} counts"
    what = "is above the share" if settled.readable else "is no cap"
    return f"{said} {what}; {settled.text} counts{_basis(figures)}"


def server_unaware(launch: Launch, share: str, *, args: bool) -> str:
    """
    Say that a server does not know its share, and how it can learn of it.
    """
    flag = launch.flag.text.rstrip("=")
    said = f"{flag} {shown(launch.value)}" if launch.value else f"{launch.server} without {flag}"
    joint = "=" if launch.flag.text.endswith("=") else " "
    if not args:
        remedy = f"write {flag}{joint}{share} or set {names.ARGS}"
    else:
        remedy = f"{launch.obstacle}: write {flag}{joint}$({names.ENV_SERVER}) there"
    return f"{said} takes more than the share {share}; {remedy}"


def _basis(figures: Figures) -> str:
    limit = write_mebibytes(figures.limit_bytes)
    if figures.card_bytes is None:
        return f" (limit {limit})"
    return f" (limit {limit} of {write_mebibytes(figures.card_bytes)})"
