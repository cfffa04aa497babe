"""The amounts that profiles give to the pods of their owners, where they are to be applied."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.need.applied import AppliedProfile
from gpufence.need.profile import Apply, profile_name, read_profile
from gpufence.owners import top_owner
from kube import group
from kube.informers import Store
from kube.owners import controller_of
from kube.replies import part_of
from kube.watch import Source

if TYPE_CHECKING:
    from gpufence.shape import Object
    from kube import JsonObject
    from kube.informers import Interner


class Profiles:
    """All profiles that are to be applied, and which of them is a pod's."""

    name = "profiles"

    def __init__(self) -> None:
        self.store: Store[AppliedProfile] = Store()

    def source(self, interner: Interner) -> Source[tuple[str, AppliedProfile | None]]:
        keep = partial(keep_profile, interner=interner)
        return Source(path=group(names.PROFILE_GROUP, names.PROFILES), keep=keep)

    def of_pod(self, namespace: str, pod: Object) -> AppliedProfile | None:
        """Return the profile of a pod's owner, where there is one that is to be applied."""
        return self.store.get(key_of(namespace, pod)) if len(self.store) else None


def keep_profile(profile: JsonObject, interner: Interner) -> tuple[str, AppliedProfile | None]:
    """
    Remember of a profile what it gives to pods, where it is to be applied and has anything to give.
    """
    metadata = profile.get("metadata", {})
    key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    try:
        found = read_profile(profile)
    except InvalidError:
        return key, None
    if found.apply is not Apply.AT_CREATE or not found.applied:
        return key, None
    most = min(found.terms.most_bytes or LARGEST_CARD, LARGEST_CARD)
    amounts = {interner.value(name): min(amount, most) for name, amount in found.applied.items()}
    return key, AppliedProfile(found.name, found.generation, amounts)


def key_of(namespace: str, pod: Object) -> str:
    """Return by which key the profile of a pod's owner would be remembered."""
    metadata = part_of(dict(pod), "metadata")
    owner = controller_of(metadata)
    if owner is None:
        return f"{namespace}/{profile_name('Pod', str(metadata.get('name', '')))}"
    kind, name = top_owner(owner.kind, owner.name, part_of(metadata, "labels"))
    return f"{namespace}/{profile_name(kind, name)}"
