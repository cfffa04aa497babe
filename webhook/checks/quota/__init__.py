"""
The quota of a namespace for amounts in annotations: `gpufence.io/quota-memory`.

Component `quota` gives the webhook the right to follow pods, and to keep in a ConfigMap which were
let in a moment ago.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.annotations import read_namespace_options
from gpufence.errors import InvalidError, Problem, annotation_problem
from gpufence.mode import Mode
from gpufence.pods import read_pod
from gpufence.quantity import MIB, write_bytes
from gpufence.quota import amount_key, asked_of
from service.exposition import Family
from webhook.checks.quota.desk import Desk
from webhook.checks.quota.reservations import NewPod, ticket_of
from webhook.checks.quota.tally import Tally
from webhook.hooks import PASSED, CheckResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from gpufence.pods import Pod
    from webhook.checks.quota.reservations import InUse, RoomVerdict
    from webhook.cluster import LiveCluster
    from webhook.hooks import Admission
    from webhook.policy import WebhookPolicy

QUOTA = "gpufence_quota_memory_bytes"
USED = "gpufence_quota_memory_used_bytes"
_TOKEN_BYTES = 6
_DEADLINES = 2.5  # of one question: 2 s, where the API server waits 3 s for the webhook
_NOT_COUNTED = (
    f"{names.QUOTA_MEMORY} of the namespace is not held to: the webhook does not follow pods; "
    "an administrator installs component quota"
)

_DOUBTFUL = (
    f"what is left of {names.QUOTA_MEMORY} of the namespace cannot be told at the moment, since "
    "the API server is slow and many pods are made at once; try again"
)


class _Quota(NamedTuple):
    """What a namespace says: an amount, or why it is none."""

    bytes: int | None
    problem: Problem | None


class QuotaMemory:
    """Counts pods before they are let in, and shows what is used of each quota."""

    name = "quota"

    def __init__(self, policy: WebhookPolicy) -> None:
        self.follows = Tally(policy)
        self._cluster: LiveCluster | None = None
        self._desk: Desk | None = None

    def begin(self, cluster: LiveCluster, namespace: str) -> None:
        self._cluster = cluster
        patience = _DEADLINES * cluster.deadline_seconds
        self._desk = Desk(cluster.ask, namespace, patience, self._look)

    def concerns(self, namespace: Mapping[str, str]) -> bool:
        return names.QUOTA_MEMORY in namespace

    async def check(self, admission: Admission) -> CheckResult:
        """Let a pod in where its namespace has room for it; the modes below evict only warn."""
        pod, quota = _read(admission), _quota(admission.namespace)
        asked = None if pod is None else asked_of(pod)
        if pod is None or asked is None:
            return PASSED
        if quota.bytes is None:
            said = "" if quota.problem is None else f"namespace {quota.problem.sentence}"
            return CheckResult(warnings=(said,))
        if self._cluster is None or self._desk is None or not self._cluster.follows(Tally.name):
            return CheckResult(warnings=(_NOT_COUNTED,))
        amount = self.follows.amount(asked, pod, self._cluster.fleet())
        verdict = await self._desk.settle(_asking(admission, amount, quota.bytes))
        written = {names.COUNTED: verdict.ticket} if verdict.ticket else {}
        if verdict.fits:
            return CheckResult(annotations=written)
        text = _too_much(admission, pod, amount, verdict)
        if admission.mode is Mode.EVICT:
            return CheckResult(refusal=text)
        return CheckResult(warnings=(text,), annotations=written)

    def families(self) -> Iterator[Family]:
        """Show the quota of each namespace that has one, and what its live pods use."""
        quotas = self._quotas()
        counted, _ = self._look(quotas)
        shown = [({"namespace": name}, amount) for name, amount in sorted(quotas.items())]
        yield Family(QUOTA, "gauge", f"What {names.QUOTA_MEMORY} of a namespace says", tuple(shown))
        used = [({"namespace": name}, counted[name].used) for name in sorted(counted)]
        text = "What the live pods of a namespace with a quota ask for by annotations"
        yield Family(USED, "gauge", text, tuple(used))

    def _quotas(self) -> dict[str, int]:
        if self._cluster is None or not self._cluster.follows(Tally.name):
            return {}
        said = self._cluster.namespaces.items.items()
        read = {name: _quota(view.annotations).bytes for name, view in said}
        return {name: amount for name, amount in read.items() if amount is not None}

    def _look(self, namespaces: Collection[str]) -> tuple[Mapping[str, InUse], Collection[str]]:
        if self._cluster is None:
            return {}, ()
        return self.follows.counted(namespaces, self._cluster.fleet()), self.follows.seen


def _quota(namespace: Mapping[str, str]) -> _Quota:
    text = namespace.get(names.QUOTA_MEMORY)
    if text is None:
        return _Quota(None, None)
    options = read_namespace_options({names.QUOTA_MEMORY: text})
    return _Quota(options.quota_bytes, next(iter(options.unreadable), None))


def _read(admission: Admission) -> Pod | None:
    try:
        return read_pod(admission.pod)
    except InvalidError:
        return None


def _asking(admission: Admission, amount: int, quota: int) -> NewPod:
    subject = admission.subject
    return NewPod(
        namespace=subject.namespace,
        name=subject.name,
        amount=amount,
        quota=quota,
        ticket=str(admission.came.get(names.COUNTED, "")),
        fresh=ticket_of(subject.name, secrets.token_hex(_TOKEN_BYTES)),
        refusable=admission.mode is Mode.EVICT,
        dry_run=subject.dry_run,
    )


def _too_much(admission: Admission, pod: Pod, amount: int, verdict: RoomVerdict) -> str:
    if verdict.doubtful:
        return _DOUBTFUL
    key = amount_key(pod.annotations)
    quota = admission.namespace[names.QUOTA_MEMORY]
    pods = f"{verdict.pods} pod{'s' * (verdict.pods != 1)}"
    used = f"{names.QUOTA_MEMORY} {quota} are {_shown(verdict.used)} in use by {pods}"
    reason = f"asks for {_shown(amount)} of GPU memory, and of the namespace's {used}"
    remedy = "lower it, delete pods, or have the quota raised"
    return annotation_problem(key, pod.annotations.get(key, ""), reason, remedy).sentence


def _shown(amount: int) -> str:
    return write_bytes(amount // MIB * MIB, largest="Gi")
