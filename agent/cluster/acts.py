"""
Making a pod go: a last look at it, at its namespace and at the kill switch, then the call itself.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from agent.cluster.answers import is_unsure, read_refusal
from agent.cluster.keep import NO_WORDS, keep_namespace, keep_pod, keep_policy
from agent.cluster.objects import deletion, eviction
from agent.judge import objection_of_pod
from agent.model.decision import Action, ActResult, Answer
from agent.pod_view import PodContext, read_pod_on_node
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.mode import Mode, highest_mode
from kube import ForbiddenError, KubeError, NotFoundError, ReplyError, UnreachableError, core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster.keep import Words
    from agent.cluster.settings import ClusterSettings
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)


class Clients(NamedTuple):
    """
    The agent's own account, which reads words, and whoever it acts as.
    """

    own: Client
    acting: Client


class _Asking:
    """
    Requests that share one deadline.
    """

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

    `ground` says what a pod stands on whose namespace has these words, under this kill switch.
    """

    def __init__(
        self, settings: ClusterSettings, ground: Callable[[Words, Mode], PodContext]
    ) -> None:
        self._settings = settings
        self._ground = ground

    def carry_out(self, verdict: Verdict, clients: Clients) -> ActResult:
        """
        Look again, then ask; never raises, and answers within the settings' seconds.
        """
        asking = _Asking(self._settings)
        try:
            pod = self._look(verdict, clients, asking)
            result = pod if isinstance(pod, ActResult) else self._ask(verdict, pod, clients, asking)
        except GpufenceError as error:
            after = error.retry_after_seconds if isinstance(error, ReplyError) else None
            result = ActResult(Answer.FAILED, after or 0.0, str(error))
        pod_name = f"{verdict.pod.namespace}/{verdict.pod.name}"
        _log.info("%s of %s: %s %s", verdict.action, pod_name, result.answer, result.detail)
        return result

    def _look(self, verdict: Verdict, clients: Clients, asking: _Asking) -> PodOnNode | ActResult:
        """
        Read the pod as it is now. What the watches last said may be a minute old.
        """
        raw = self._find(verdict.pod, clients, asking)
        if isinstance(raw, ActResult):
            return raw
        ground = self._ground(
            self._words(verdict.pod.namespace, clients.own, asking),
            self._highest(clients.own, asking),
        )
        pod = read_pod_on_node(raw, ground)
        objection = objection_of_pod(pod, verdict)
        return ActResult(Answer.CANCELLED, detail=objection) if objection else pod

    def _find(self, pod: PodOnNode, clients: Clients, asking: _Asking) -> JsonObject | ActResult:
        """
        Ask for the pod, and look for it by a list where that is refused: a node may not know that
        a pod is gone, but may list what is bound to it. The list alone would do, at the price of a
        tenth of a second, which an API server takes to make sure that its cache is up to date.
        """
        path = core("namespaces", pod.namespace, "pods")
        try:
            items = [clients.acting.get(f"{path}/{pod.name}", timeout_seconds=asking.seconds())]
        except (ForbiddenError, NotFoundError):
            node = self._settings.node
            query = {"fieldSelector": f"metadata.name={pod.name},spec.nodeName={node}"}
            listed = clients.acting.get(path, query, timeout_seconds=asking.seconds())
            items = listed.get("items") or []
        found = [keep_pod(item) for item in items]
        if not found:
            return ActResult(Answer.GONE, detail="the pod is gone")
        uid, raw = found[0]
        if uid != pod.uid:
            return ActResult(Answer.REPLACED, detail=f"another pod has its name, with UID {uid}")
        return raw

    def _words(self, namespace: str, client: Client, asking: _Asking) -> Words:
        try:
            found = client.get(core("namespaces", namespace), timeout_seconds=asking.seconds())
        except NotFoundError:
            return NO_WORDS
        return keep_namespace(found)[1]

    def _highest(self, client: Client, asking: _Asking) -> Mode:
        path = core(
            "namespaces", self._settings.system_namespace, "configmaps", names.POLICY_CONFIGMAP
        )
        data: Mapping[str, str] | None = None
        try:
            data = keep_policy(client.get(path, timeout_seconds=asking.seconds()))[1]
        except NotFoundError:
            _log.warning("configmap %s is gone: nobody is evicted", names.POLICY_CONFIGMAP)
        return highest_mode(data)

    def _ask(
        self, verdict: Verdict, pod: PodOnNode, clients: Clients, asking: _Asking
    ) -> ActResult:
        client, grace = clients.acting, self._settings.eviction_grace_seconds
        path = core("namespaces", pod.namespace, "pods", pod.name)
        try:
            if verdict.action in {Action.EVICT, Action.EVICT_JOB}:
                # A Job's pod is asked for as an eviction, and deleted once that would be allowed:
                # what an eviction ends does not count as a failure, and would come back for ever.
                dry = {"dryRun": "All"} if verdict.action is Action.EVICT_JOB else None
                body = eviction(pod, grace)
                client.post(f"{path}/eviction", body, dry, timeout_seconds=asking.seconds())
            if verdict.action in {Action.EVICT_JOB, Action.DELETE}:
                client.delete(path, deletion(pod, grace), timeout_seconds=asking.seconds())
        except KubeError as error:
            if is_unsure(error):
                return self._look_after(error, pod, clients, asking)
            return read_refusal(error)
        return ActResult(Answer.ACCEPTED)

    def _look_after(
        self, error: KubeError, pod: PodOnNode, clients: Clients, asking: _Asking
    ) -> ActResult:
        """
        See what became of a request that got no clear answer.
        """
        raw = self._find(pod, clients, asking)
        if isinstance(raw, ActResult):
            return raw
        if raw["metadata"].get("deletionTimestamp") is not None:
            return ActResult(Answer.ACCEPTED, detail="the pod is terminating")
        return read_refusal(error)
