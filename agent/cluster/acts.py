"""
Making a pod go: a last look at it, at its namespace and at the kill switch, then the call itself.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.cluster.filter import filter_pod
from agent.cluster.settings import COMPONENT
from agent.cluster.watched_cluster import NO_TEXTS, POLICY_KEYS
from agent.judge import objection_of_pod
from agent.model.decision import Action, ActResult, Answer
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.mode import Mode, highest_mode
from kube import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    KubeError,
    NotFoundError,
    PatchType,
    ReplyError,
    ServerError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
    core,
)
from kube.informers.views import view_namespace, view_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent.cluster.settings import ClusterSettings
    from agent.fence import ClaimsOfPod, PodContext
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from kube import Client, JsonObject
    from kube.informers.views import NamespaceView

_log = logging.getLogger(__name__)
_BUDGET_CAUSE: Final = "DisruptionBudget"
_BUDGET_KIND: Final = "poddisruptionbudget"
MOST_READING: Final = 2
"""Pods that are read at once; a tenant decides how large they are, and when they are to go."""
_ROOM: Final[JsonObject] = {"status": {"conditions": None}}
"""
What is taken off a pod too large to be deleted: its conditions, and with them who wrote them. Its
kubelet writes them again. Nothing else can be: through the status no other field manager's entry.
"""
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"


class Clients(NamedTuple):
    """The agent's own account, which reads namespaces, and the identity it acts by."""

    own: Client
    acting: Client


class _Deadline:
    """Requests that share one deadline."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._most = settings.request_seconds
        self._until = time.monotonic() + settings.act_seconds

    def seconds(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise UnreachableError("the API server took too long for all of an eviction's requests")
        return min(left, self._most)


class Acts:
    """
    Carries out one act at a time or several; nothing is remembered between them.

    `context` returns what holds for the pods of such a namespace, under this kill switch.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        context: Callable[[NamespaceView, Mode], PodContext],
        claims: Callable[[str], ClaimsOfPod],
    ) -> None:
        self._settings = settings
        self._context = context
        self._claims = claims
        self._reading = threading.BoundedSemaphore(MOST_READING)

    def carry_out(self, verdict: Verdict, clients: Clients) -> ActResult:
        """Look again, then ask; never raises, and answers within the settings' seconds."""
        deadline = _Deadline(self._settings)
        try:
            pod = self._look(verdict, clients, deadline)
            result = (
                pod if isinstance(pod, ActResult) else self._ask(verdict, pod, clients, deadline)
            )
        except GpufenceError as error:
            after = error.retry_after_seconds if isinstance(error, ReplyError) else None
            result = ActResult(Answer.FAILED, after or 0.0, str(error))
        pod_name = f"{verdict.pod.namespace}/{verdict.pod.name}"
        _log.info("%s of %s: %s %s", verdict.action, pod_name, result.answer, result.detail)
        return result

    def _look(
        self, verdict: Verdict, clients: Clients, deadline: _Deadline
    ) -> PodOnNode | ActResult:
        """Read the pod as it is now. What the watches last heard may be a minute old."""
        raw = self._find(verdict.pod, clients, deadline)
        if isinstance(raw, ActResult):
            return raw
        context = self._context(
            self._namespace(verdict.pod.namespace, clients.own, deadline),
            self._highest(clients.own, deadline),
        )
        pod = read_pod_on_node(raw, context, self._claims(verdict.pod.uid))
        objection = objection_of_pod(pod, verdict)
        return ActResult(Answer.CANCELLED, detail=objection) if objection else pod

    def _find(
        self, pod: PodOnNode, clients: Clients, deadline: _Deadline
    ) -> JsonObject | ActResult:
        """
        Ask for the pod, and look for it by a list where that is refused: a node may not know that
        a pod is gone, but may list what is bound to it. The list alone would do, at the price of a
        tenth of a second, which an API server takes to make sure that its cache is up to date.
        """
        path = core("namespaces", pod.namespace, "pods")
        with self._turn(deadline):
            try:
                one = clients.acting.get(f"{path}/{pod.name}", timeout_seconds=deadline.seconds())
                pods = [filter_pod(one)]
            except (ForbiddenError, NotFoundError):
                node = self._settings.node
                query = {"fieldSelector": f"metadata.name={pod.name},spec.nodeName={node}"}
                listed = clients.acting.get(path, query, timeout_seconds=deadline.seconds())
                pods = [filter_pod(item) for item in listed.get("items") or []]
        if not pods:
            return ActResult(Answer.GONE, detail="the pod is gone")
        uid, kept = pods[0]
        if uid != pod.uid:
            return ActResult(Answer.REPLACED, detail=f"another pod has its name, with UID {uid}")
        return kept

    @contextmanager
    def _turn(self, deadline: _Deadline) -> Iterator[None]:
        """Wait until a pod may be read."""
        if not self._reading.acquire(timeout=deadline.seconds()):
            raise UnreachableError("the API server took too long with the pods of other evictions")
        try:
            yield
        finally:
            self._reading.release()

    def _namespace(self, namespace: str, client: Client, deadline: _Deadline) -> NamespaceView:
        try:
            raw = client.get(core("namespaces", namespace), timeout_seconds=deadline.seconds())
        except NotFoundError:
            return NO_TEXTS
        return view_namespace(raw)[1] or NO_TEXTS

    def _highest(self, client: Client, deadline: _Deadline) -> Mode:
        path = core(
            "namespaces", self._settings.system_namespace, "configmaps", names.POLICY_CONFIGMAP
        )
        data: Mapping[str, str] | None = None
        try:
            raw = client.get(path, timeout_seconds=deadline.seconds())
            data = view_policy(raw, POLICY_KEYS)[1]
        except NotFoundError:
            _log.warning("configmap %s is gone: no pod is evicted", names.POLICY_CONFIGMAP)
        return highest_mode(data)

    def _ask(
        self, verdict: Verdict, pod: PodOnNode, clients: Clients, deadline: _Deadline
    ) -> ActResult:
        action, client = verdict.action, clients.acting
        try:
            if action in {Action.EVICT, Action.EVICT_JOB}:
                action = self._evict(action, pod, client, deadline)
            if action in {Action.EVICT_JOB, Action.DELETE}:
                self._delete(pod, client, deadline)
        except KubeError as error:
            if is_unsure(error):
                return self._look_after(error, pod, clients, deadline)
            return read_refusal(error)
        return ActResult(Answer.ACCEPTED)

    def _evict(self, action: Action, pod: PodOnNode, client: Client, deadline: _Deadline) -> Action:
        """
        Ask for the eviction; return what is left to do. The condition that it writes may be more
        than etcd takes of a pod as large as that; a deletion writes almost nothing.

        A Job's pod is asked for as an eviction, and deleted once that would be allowed: what an
        eviction ends does not count as a failure, and would come back for ever.
        """
        dry = {"dryRun": "All"} if action is Action.EVICT_JOB else None
        body = eviction(pod, self._settings.eviction_grace_seconds)
        path = f"{_path(pod)}/eviction"
        try:
            client.post(path, body, dry, timeout_seconds=deadline.seconds())
        except TooLargeError as error:
            _log.info("%s; deleting the pod instead", error)
            return Action.DELETE
        return action

    def _delete(self, pod: PodOnNode, client: Client, deadline: _Deadline) -> None:
        """
        Delete the pod; where even the time of its deletion is too much for etcd to write, make room
        for that first.
        """
        try:
            self._delete_now(pod, client, deadline)
        except TooLargeError:
            if not self._make_room(pod, client, deadline):
                raise
            self._delete_after_pauses(pod, client, deadline)

    def _delete_after_pauses(self, pod: PodOnNode, client: Client, deadline: _Deadline) -> None:
        *others, last = self._settings.pauses_seconds
        for pause in others:
            time.sleep(pause)
            with suppress(TooLargeError):
                return self._delete_now(pod, client, deadline)
        time.sleep(last)
        return self._delete_now(pod, client, deadline)

    def _delete_now(self, pod: PodOnNode, client: Client, deadline: _Deadline) -> None:
        options = deletion(pod, self._settings.eviction_grace_seconds)
        with self._turn(deadline):  # the answer is the pod
            client.delete(_path(pod), options, timeout_seconds=deadline.seconds())

    def _make_room(self, pod: PodOnNode, client: Client, deadline: _Deadline) -> bool:
        """Take off the pod's status what its end does not need; return whether that was done."""
        body = {**_ROOM, "metadata": {"uid": pod.uid}}
        path = f"{_path(pod)}/status"
        try:
            with self._turn(deadline):
                client.patch(path, body, PatchType.MERGE, timeout_seconds=deadline.seconds())
        except (ForbiddenError, InvalidRequestError, TooLargeError) as error:
            _log.info("there is no making room in pod %s/%s: %s", pod.namespace, pod.name, error)
            return False
        return True

    def _look_after(
        self, error: KubeError, pod: PodOnNode, clients: Clients, deadline: _Deadline
    ) -> ActResult:
        """See what became of a request that got no clear answer."""
        raw = self._find(pod, clients, deadline)
        if isinstance(raw, ActResult):
            return raw
        if raw["metadata"].get("deletionTimestamp") is not None:
            return ActResult(Answer.ACCEPTED, detail="the pod is terminating")
        return read_refusal(error)


def is_unsure(error: KubeError) -> bool:
    """
    Return whether only another look at the pod shows what became of it.

    After a conflict the pod may be another one or merely have changed; without an answer the server
    may have acted all the same.
    """
    return isinstance(error, (ConflictError, UnreachableError))


def read_refusal(error: KubeError) -> ActResult:
    """Read a refusal of an eviction or a deletion."""
    if isinstance(error, NotFoundError):
        return ActResult(Answer.GONE, detail=str(error))
    after = error.retry_after_seconds if isinstance(error, ReplyError) else None
    answer = Answer.BLOCKED if _by_budget(error) else Answer.FAILED
    if isinstance(error, TooLargeError):
        answer = Answer.TOO_LARGE
    return ActResult(answer, after or 0.0, _detail(error))


def _by_budget(error: KubeError) -> bool:
    """
    Tell a budget's refusal from the server's own trouble: only the former is ever overridden.

    Until 1.37 the refusal of a budget in an impossible state (403) named no cause but its object.
    """
    if isinstance(error, (ThrottledError, ForbiddenError)):
        kind = str(error.failure.details.get("kind", "")).lower()
        named = any(cause.reason == _BUDGET_CAUSE for cause in error.causes)
        return named or kind.startswith(_BUDGET_KIND)
    return isinstance(error, ServerError) and _SEVERAL_BUDGETS in error.failure.message


def _detail(error: KubeError) -> str:
    if not isinstance(error, ReplyError):
        return str(error)
    causes = [cause.message for cause in error.causes if cause.message]
    return " ".join([error.failure.message, *causes])


def eviction(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    """
    Ask for the eviction of this very pod: a StatefulSet's next one has the same name.

    The annotations are for admission hooks and audit logs, as the descheduler writes them.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "namespace": pod.namespace,
            "name": pod.name,
            "annotations": {"reason": names.EVICTED, "requested-by": COMPONENT},
        },
        "deleteOptions": _options(pod, most_grace_seconds),
    }


def deletion(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, most_grace_seconds)}


def _path(pod: PodOnNode) -> str:
    return core("namespaces", pod.namespace, "pods", pod.name)


def _options(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    # Zero would take the pod out of the API at once, while its processes still hold their memory.
    grace = max(min(pod.grace_seconds, most_grace_seconds), 1)
    return {"gracePeriodSeconds": grace, "preconditions": {"uid": pod.uid}}
