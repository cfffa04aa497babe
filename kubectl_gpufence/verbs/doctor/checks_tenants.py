"""PURE. What tenants have written that nobody can read, and whose pods are evicted again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpufence.annotations import read_pod_options
from gpufence.errors import Finding, look, ok, shown, unknown, wrong
from gpufence.mode import MODES
from gpufence.names import EVICTED, IDLE, QUOTA_MEMORY
from gpufence.quantity import write_mebibytes
from gpufence.quota import ENDED, asked_of
from kubectl_gpufence.cluster_view import named
from kubectl_gpufence.verbs.doctor.installation import IDLE_WORDS
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.errors import Problem
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.verbs.doctor.installation import Installation, LabelledNamespace

_AGAIN: Final = 2
_NAMESPACES: Final = "namespaces"
_PODS: Final = "pods"
_OWNERS: Final = "owners"
_QUOTAS: Final = "quotas"


def check_tenants(installation: Installation) -> Iterator[Finding]:
    """Find words that nobody can read, and owners evicted again and again."""
    namespaces = installation.namespaces.value or []
    for item in namespaces:
        yield from _of_namespace(item)
    fenced = {item.name: item for item in namespaces if item.mode in MODES}
    pods = [pod for pod in installation.pods.value or [] if pod.namespace in fenced]
    yield from _unreadable(pods)
    yield from _evicted_again(installation)
    yield from _without_quota(sorted(fenced.values()), installation)
    for item in fenced.values():
        yield from _above_quota(item, [pod for pod in pods if pod.namespace == item.name])


def _of_namespace(item: LabelledNamespace) -> Iterator[Finding]:
    if item.idle is not None and item.idle not in IDLE_WORDS:
        words = ", ".join(IDLE_WORDS)
        yield wrong(
            _NAMESPACES,
            f"{item.name} has {IDLE}: {shown(item.idle)}, which counts as none at all",
            f"kubectl label namespace {item.name} {IDLE}=report --overwrite (or one of {words})",
        )
    for problem in item.problems:
        yield wrong(_NAMESPACES, f"{item.name} has {_what(problem)}", problem.remedy)


def _unreadable(pods: list[SeenPod]) -> Iterator[Finding]:
    """List what is wrong on pods, equal mistakes once; they take nothing unreadable over."""
    wrongly: dict[Problem, list[str]] = {}
    for pod in pods:
        containers = frozenset(container.name for container in pod.pod.containers)
        for problem in read_pod_options(pod.annotations, containers).unreadable:
            wrongly.setdefault(problem, []).append(f"{pod.namespace}/{pod.name}")
    for problem, on in wrongly.items():
        text = f"{counted(len(on), 'pod')} with {_what(problem)}: {named(on)}"
        yield look(_PODS, text, problem.remedy)


def _evicted_again(installation: Installation) -> Iterator[Finding]:
    """Name the owners whose pods were evicted more than once, as far as Events are kept."""
    if installation.events.hidden:
        yield unknown(_OWNERS, installation.events.hidden, "ask an administrator to run this")
        return
    times: Counter[str] = Counter()
    for event in installation.events.value or []:
        namespace, kind, *name = event.about.split("/")
        if event.reason == EVICTED and kind != "Pod" and name:
            times[f"{namespace}/{kind}/{name[0]}"] += event.times
    again = [f"{owner} ({count} times)" for owner, count in times.items() if count >= _AGAIN]
    if again:
        yield look(
            _OWNERS,
            f"{counted(len(again), 'owner')} evicted again and again: {named(again)}",
            "`kubectl gpufence recommend` says how much they need; or let them use less",
        )


def _without_quota(
    fenced: list[LabelledNamespace], installation: Installation
) -> Iterator[Finding]:
    """Name the namespaces without a quota on GPUs; where none has one, that is no mistake."""
    limited = set(filter(None, installation.quotas.value or []))
    limited |= {item.name for item in fenced if item.quota_bytes is not None}
    free = [item.name for item in fenced if item.name not in limited]
    if not free or installation.quotas.hidden:
        return
    text = f"{counted(len(free), 'fenced namespace')} without a quota on GPU memory: {named(free)}"
    remedy = "a ResourceQuota with requests.<resource of your sharing system> (docs/quota.md)"
    yield look(_QUOTAS, text, remedy) if limited else ok(_QUOTAS, text)


def _above_quota(item: LabelledNamespace, pods: list[SeenPod]) -> Iterator[Finding]:
    """Find what a namespace's pods have above its quota for amounts in annotations."""
    if item.quota_bytes is None:
        return
    used = sum(_asked_by(pod) for pod in pods if pod.phase not in ENDED)
    if used > item.quota_bytes:
        quota, asked = write_mebibytes(item.quota_bytes), write_mebibytes(used)
        text = f"pods of {item.name} ask for {asked}, above its {QUOTA_MEMORY} of {quota}"
        yield look(_QUOTAS, text, "delete some, or raise it (docs/runbooks/GpufenceQuotaPassed.md)")


def _asked_by(pod: SeenPod) -> int:
    """Return what a pod asks for by annotations; a share counts once its node tells its card."""
    asked = asked_of(pod.pod)
    cards = () if pod.on_node is None else pod.on_node.cards
    return 0 if asked is None else asked.on(max((card.memory_bytes for card in cards), default=0))


def _what(problem: Problem) -> str:
    return f"{problem.key}: {shown(problem.value)}, which {problem.reason}"
