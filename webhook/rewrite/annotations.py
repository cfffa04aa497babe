"""
PURE. The pod's annotations: what the namespace adds, what is dropped as forged, what is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpufence import names
from gpufence.annotations import defaults_from, read_pod_options
from gpufence.candidates import wanted_resources
from gpufence.dialects import BOOKKEEPING_KEYS, CONTAINER_KEYS, bookkeeping, concerns_gpufence
from gpufence.plan import ProfileUsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpufence.errors import Problem
    from gpufence.pods import Pod
    from webhook.rewrite.patch import Patch

MOST_BYTES = 250 * 1024
"""The API server takes 256 KiB on one object; the rest is for whoever comes after us."""

_FORGEABLE = BOOKKEEPING_KEYS.union(names.WRITTEN_KEYS)
_OF_CONTAINERS = tuple(beginning for _, beginning, _ in CONTAINER_KEYS)
_SUSPECT = (names.ENV_PREFIX, *_OF_CONTAINERS)
_MOST_REMARKS = 16
_WIDEST = 4  # bytes of one character
_PATH = ("metadata", "annotations")


class OwnersAmounts(Protocol):
    """Amounts that are known of an owner, as those of its profile are."""

    @property
    def name(self) -> str: ...

    @property
    def generation(self) -> int: ...

    def texts(self, pod: Pod) -> Mapping[str, str]:
        """Return the annotations by which a pod would have them; none where it has its own."""
        ...

    def holds(self, pod: Pod) -> bool:
        """Return whether a pod has just these amounts."""
        ...


class AdmittedPod(NamedTuple):
    """
    A pod as it counts, with the defaults that it takes over, and remarks.

    `standing` remarks hold as long as the pod does; `passing` ones are about what is dropped now,
    and a second look does not find it again. `profile` is whose amounts it holds to, `blame` what
    to say where the amounts it takes over come to nothing; empty where it takes over none.
    """

    pod: Pod
    defaults: Mapping[str, str]
    standing: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    profile: ProfileUsed | None = None
    blame: str = ""


def admissions(
    pod: Pod, namespace: Mapping[str, str], profile: OwnersAmounts | None
) -> Iterator[AdmittedPod]:
    """
    Yield a pod with the amounts of its owner's profile, then with its namespace's, then with its
    own alone, as far as there are any; each with the namespace's other defaults, and without what
    only schedulers may write.
    """
    forged = frozenset(bookkeeping(pod.annotations))
    if not namespace and not forged and profile is None:
        yield AdmittedPod(pod, {})
    else:
        yield from _of_each_source(pod, namespace, profile, forged)


def _of_each_source(
    pod: Pod,
    namespace: Mapping[str, str],
    profile: OwnersAmounts | None,
    forged: frozenset[str],
) -> Iterator[AdmittedPod]:
    ours = may_be_ours(pod)
    containers = frozenset(item.name for item in pod.containers)
    defaults, problems = _defaults(namespace if ours else {}, pod.annotations, containers)
    others = {key: text for key, text in defaults.items() if not key.startswith(names.MEMORY)}
    kept = {key: text for key, text in pod.annotations.items() if key not in forged}
    standing = tuple([f"namespace {problem.sentence}" for problem in problems])
    passing = remarks(sorted(forged))

    def admitted(texts: Mapping[str, str], blame: str = "") -> AdmittedPod:
        found = pod._replace(annotations={**kept, **texts})
        return AdmittedPod(found, texts, standing, passing, blame=blame)

    if profile is not None and ours:
        amounts = profile.texts(pod)
        blame = f"profile {profile.name} is not applied: {{}}"
        found = admitted({**others, **amounts} if amounts else defaults, blame)
        if profile.holds(found.pod):
            yield found._replace(profile=ProfileUsed(profile.name, profile.generation))
    if len(others) < len(defaults):
        yield admitted(defaults, "namespace {}; not counted here")
    yield admitted(others)


def is_amount(key: str, text: str, namespace: Mapping[str, str]) -> bool:
    """Return whether a pod's annotation is an amount as its namespace has it, too."""
    return key.startswith(names.MEMORY) and namespace.get(key) == text


def values_of(record: Mapping[str, str]) -> dict[str, str]:
    """Return what containers read themselves: the values of slots, and the start-up hook."""
    return {
        key: text
        for key, text in record.items()
        if key.startswith(names.ENV_PREFIX) or key == names.SITECUSTOMIZE
    }


def remarks(dropped: Iterable[str]) -> tuple[str, ...]:
    """
    Name keys that a pod's creator has no right to; what is said of gpufence's own would be noise,
    since a second pass drops those too.
    """
    foreign = bookkeeping(dropped)
    said = [f"{key} is for schedulers and device plugins; dropped" for key in foreign]
    if len(said) > _MOST_REMARKS:
        more = f"{len(said) - _MOST_REMARKS} more keys are for schedulers and device plugins"
        said[_MOST_REMARKS:] = [f"{more}; dropped"]
    return tuple(said)


def may_be_ours(pod: Pod) -> bool:
    """
    Return whether a pod is one for which the API server calls the webhook; one with claims that
    give it no GPU is none of ours all the same.
    """
    if pod.devices or pod.doubt or wanted_resources(pod):
        return True
    return concerns_gpufence(pod.annotations)


def settle_annotations(
    patch: Patch, present: Mapping[str, str], wanted: Mapping[str, str]
) -> list[str]:
    """
    Make the annotations what they should be, naming only what differs; return what is dropped.
    """
    suspects = [key for key in present if key.startswith(_SUSPECT) or key in _FORGEABLE]
    theirs = [key for key in suspects if key.startswith(_OF_CONTAINERS)]
    spared = wanted.keys() | (set(theirs).difference(bookkeeping(theirs)) if theirs else ())
    forged = [key for key in suspects if key not in spared]
    if forged:
        patch.remove(_PATH, *forged)
    if not present.keys().isdisjoint(wanted):
        wanted = {key: text for key, text in wanted.items() if present.get(key) != text}
    patch.update(_PATH, wanted)
    return forged


def no_room(present: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """
    Say why the API server would not take all these annotations together, without the forged ones,
    and what helps; empty where it will. What stands there as it should be was taken before.
    """
    characters = "".join((*present, *present.values(), *wanted, *wanted.values()))
    if len(characters) * _WIDEST <= MOST_BYTES:
        return ""
    own, ours = _bytes(_others(present, wanted)), _bytes(wanted)
    taken = all(present.get(key) == text for key, text in wanted.items())
    if taken or own + ours <= MOST_BYTES:
        return ""
    remedy = "shorten them to 200 KiB"
    if ours > own:
        remedy = "ask for the GPU in fewer containers, with shorter variables"
    return (
        f"metadata.annotations: {own} bytes of the pod's own leave no room for {ours} of gpufence "
        f"below {MOST_BYTES}; {remedy}"
    )


def _others(present: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what stays of the annotations that are there, beside those that are written."""
    gone = wanted.keys() | _FORGEABLE
    return {
        key: text
        for key, text in present.items()
        if key not in gone and not key.startswith(names.ENV_PREFIX)
    }


def _bytes(texts: Mapping[str, str]) -> int:
    return len("".join(texts).encode()) + len("".join(texts.values()).encode())


def _defaults(
    namespace: Mapping[str, str], own: Mapping[str, str], containers: frozenset[str]
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """
    Return the namespace's defaults for a pod, without those nobody can read, and what is wrong with
    those: a typing error of the namespace's owner must not keep anybody's pod out.
    """
    defaults = defaults_from(namespace, own, containers)
    problems = read_pod_options(defaults, containers).unreadable if defaults else ()
    for problem in problems:
        defaults.pop(problem.key, None)
    return defaults, problems
