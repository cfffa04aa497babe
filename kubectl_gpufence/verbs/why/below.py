"""
Which owners that records name belong to another one above them. A record holds what a pod alone
tells, its direct controller: a Notebook's pods name the StatefulSet that the Notebook has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.text import listed, printable
from kube import ForbiddenError, NotFoundError
from kube.workloads import read_owner
from kubectl_gpufence.owners import climb, kind_called

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kube.discovery import Kinds
    from kube.kinds import ApiKind
    from kube.owners import ApiOwner
    from kubectl_gpufence.reader import ClusterReader

OwnerName = tuple[str, str]
"""A namespace, and `Kind/name`."""

MOST_CLIMBED: Final = 256
_MAKES_PODS: Final = frozenset({"apps", "batch"})
"""Groups of kinds whose pods' records name them; but a CronJob has Jobs made by hand, too."""


class OwnersBelow(NamedTuple):
    """Owners that belong to the one above, and how that is not certain."""

    found: frozenset[OwnerName] = frozenset()
    notes: tuple[str, ...] = ()


class _Above(NamedTuple):
    """The owner that is asked about, and the `uids` of its own topmost owner by namespace."""

    kind: str
    name: str
    uids: dict[str, str]

    def owns(self, namespace: str, top: ApiOwner) -> bool:
        called = (top.kind.kind, top.name) == (self.kind, self.name)
        return called or top.uid == self.uids.get(namespace)

    def may_have_made(self, owner: str) -> bool:
        """Return whether what is gone is called as generated names are: NAME, or NAME-more."""
        name = owner.rpartition("/")[2]
        return name == self.name or name.startswith(f"{self.name}-")


def owners_below(
    reader: ClusterReader, kinds: Kinds, word: str, named: Sequence[OwnerName]
) -> OwnersBelow:
    """Climb from owners that records name, and go by the names of those that are gone."""
    called, _, name = word.partition("/")
    kind = kind_called(kinds, called)
    if kind.group in _MAKES_PODS and kind.kind != "CronJob":
        return OwnersBelow()
    climbed = named[:MOST_CLIMBED]
    spaces = sorted({namespace for namespace, _ in climbed})
    ends = reader.together(lambda each: _top(reader, kinds, kind, each, name), spaces)
    uids = {space: end.uid for space, end in zip(spaces, ends, strict=True) if end is not None}
    above = _Above(kind.kind, name, uids)
    tops = reader.together(lambda each: _top_of(reader, kinds, *each), climbed)
    pairs = list(zip(climbed, tops, strict=True))
    certain = {each for each, top in pairs if top is not None and above.owns(each[0], top)}
    likely = {each for each, top in pairs if top is None and above.may_have_made(each[1])}
    return OwnersBelow(frozenset(certain | likely), tuple(_notes(above, likely, len(named))))


def _top_of(reader: ClusterReader, kinds: Kinds, namespace: str, owner: str) -> ApiOwner | None:
    called, _, name = owner.partition("/")
    kind = kinds.called(called)
    return None if kind is None else _top(reader, kinds, kind, namespace, name)


def _top(
    reader: ClusterReader, kinds: Kinds, kind: ApiKind, namespace: str, name: str
) -> ApiOwner | None:
    """Return the topmost owner of an object; None where it is gone, or may not be read."""
    try:
        return climb(reader, kinds, read_owner(reader.client, kind, namespace, name))
    except (NotFoundError, ForbiddenError, ValueError):  # no path has such a name
        return None


def _notes(above: _Above, likely: set[OwnerName], count: int) -> Iterator[str]:
    if likely:
        names = listed(sorted(printable(owner) for _, owner in likely))
        yield f"gone, or not yours to read: {names}; {above.name}'s by name alone"
    if count > MOST_CLIMBED:
        yield f"of {count} owners with records only the last {MOST_CLIMBED} were asked about"
