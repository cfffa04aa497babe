"""What models need, from what all agents remember to one object for each owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.keepers import Shelf
from controller.keepers.profiles.keeper import ProfileKeeper, ProfileSettings, ProfileSources
from controller.keepers.profiles.writes import ProfileWrites

if TYPE_CHECKING:
    from controller.keepers import Core


def _build(core: Core, settings: ProfileSettings) -> ProfileKeeper:
    cluster, left = core.cluster, core.lease.left
    seconds, namespace = core.settings.request_seconds, core.settings.namespace
    writes = ProfileWrites(core.client, cluster.kinds, left, seconds, namespace)
    sources = ProfileSources(left, cluster.namespaces, cluster.owners)
    return ProfileKeeper(cluster.informers, writes, sources, settings, namespace)


PROFILES: Final = Shelf("profiles", "What models need", ProfileSettings, _build)
