"""What the controller shows: how each owner stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.model import Step
from gpufence.releases import OwnerRelease, OwnerReleases, write_owners

if TYPE_CHECKING:
    from controller.cluster.cluster import WatchTrust
    from controller.loop import LastPass
    from controller.model import OwnerState


def owners_page(last: LastPass | None, trust: WatchTrust, now: float) -> str:
    """Write how each owner stands."""
    if last is None:
        brake = trust.trouble or "nothing is known yet"
        return write_owners(OwnerReleases(leader=False, at=now, brake=brake))
    owners = sorted(last.state.owners.items(), key=lambda pair: pair[0])
    return write_owners(
        OwnerReleases(
            leader=last.leads,
            at=last.state.now,
            brake=last.decision.brake,
            owners=tuple(_row(owner, last) for _, owner in owners),
        )
    )


def _row(owner: OwnerState, last: LastPass) -> OwnerRelease:
    standing = last.decision.standings.get(owner.key)
    row = OwnerRelease(
        *owner.key,
        way=str(owner.way),
        state="unknown",
        step=str(Step.NOTHING),
        why=owner.why_not,
        replicas=owner.replicas,
        rung="" if owner.rung is None else str(owner.rung),
        pods=len(owner.pods),
        note=owner.note,
    )
    if standing is None:
        return row
    return row._replace(
        state=standing.state,
        step=str(standing.step),
        why=standing.why,
        idle_since=standing.idle_since,
        deadline=standing.deadline,
        contended=standing.contended,
        waiters=standing.waiters,
    )
