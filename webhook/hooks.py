"""
Answer reviews of pods that are being created, and of bindings: the one moment at which node, and so
card, are certain and no container has started.

The API server merges the annotations of a Binding into the pod in the same write that sets its
node. No binding is ever denied here: whatever is not certain lets it pass as it is, and the pod
keeps the careful values it has.
"""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpufence import names
from gpufence.dialects import declares
from gpufence.errors import GpufenceError, InvalidError
from gpufence.event_text import Anchor
from gpufence.mode import Mode
from gpufence.nodes import GpuNode
from gpufence.pods import read_claims
from gpufence.shape import escape_pointer
from kube.replies import part_of
from webhook.claims import UnknownError
from webhook.review import (
    BINDINGS,
    PODS,
    BadReviewError,
    Reply,
    ReviewOutcome,
    ReviewResult,
    Subject,
    write_allowed,
    write_denied,
)
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite
from webhook.rewrite.binding import exact_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.cards import Card
    from kube import JsonObject
    from webhook.claims import ClaimsFound
    from webhook.cluster import ClusterView
    from webhook.policy import WebhookPolicy
    from webhook.review import Review

OK = 200
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})


class Admission(NamedTuple):
    """
    A pod that is let in as far as its own words go, as it is by now; `came` are the annotations
    with which it came.
    """

    subject: Subject
    mode: Mode
    namespace: Mapping[str, str]
    came: Mapping[str, str]
    pod: JsonObject


class CheckResult(NamedTuple):
    """
    What a check says: why the pod is not let in, empty where it is; what to warn of, and to write.
    """

    refusal: str = ""
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NO_ANNOTATIONS


PASSED = CheckResult()


class PodCheck(Protocol):
    """What a pod has to pass beside what its own words say."""

    name: str
    """Of a refusal, in the metrics."""

    def concerns(self, namespace: Mapping[str, str]) -> bool:
        """Return whether a namespace with these annotations asks for it."""
        ...

    async def check(self, admission: Admission) -> CheckResult: ...


class PodHook:
    """
    Rewrites the pods of namespaces in one mode, which the API server chose by the path it called.
    """

    expected = PODS

    def __init__(
        self,
        mode: Mode,
        cluster: ClusterView,
        policy: WebhookPolicy,
        checks: Sequence[PodCheck] = (),
    ) -> None:
        self._mode = mode
        self._cluster = cluster
        self._policy = policy
        self._checks = checks
        url = policy.help_url
        # Among warnings a line of its own: API servers cut long ones.
        self._links = (f"see {url}#{Anchor.REFUSED}",) if url else ()

    async def answer(self, review: Review) -> Reply:
        """Answer one review. Raises BadReviewError for an object that is no pod."""
        annotations = self._cluster.namespace(review.subject.namespace)
        reason = ""
        if annotations is None:
            annotations, reason = await self._read_annotations(review.subject.namespace)
        checks = [each for each in self._checks if each.concerns(annotations)]
        came = dict(part_of(part_of(review.object, "metadata"), "annotations")) if checks else {}
        decision = await self._decide(review, annotations)
        if isinstance(decision, Refusal):
            return self._refused(review.subject, reason, decision.message)
        admission = Admission(review.subject, self._mode, annotations, came, review.object)
        results = []
        for each in checks:
            results.append(await each.check(admission))
            if results[-1].refusal:
                message = f"gpufence refuses this pod: {results[-1].refusal}"
                return self._refused(review.subject, each.name, message)
        return self._let_in(review, reason, decision, results)

    def unread(self, uid: str, why: str) -> Reply:
        """Refuse in evict what nobody can read: it would be let in without a limit."""
        if self._mode is Mode.EVICT:
            return self._refused(Subject(uid), "too-many", f"gpufence refuses this pod: {why}")
        outcome = ReviewOutcome(ReviewResult.UNCHANGED, Subject(uid), "too-many", why)
        audit = {"result": ReviewResult.UNCHANGED.value}
        return Reply(OK, write_allowed(uid, (), (why,), audit), outcome)

    async def _read_annotations(self, namespace: str) -> tuple[Mapping[str, str], str]:
        """
        Ask for a namespace that the watch has not brought yet.

        Its annotations are defaults that few namespaces have: without them the pod is still
        rewritten.
        """
        try:
            return await self._cluster.read_namespace(namespace), ""
        except UnknownError:
            return _NO_ANNOTATIONS, "namespace-unknown"

    async def _decide(
        self, review: Review, annotations: Mapping[str, str]
    ) -> Rewrite | Unchanged | Refusal:
        """Rewrite a pod, whose claims are asked for where it has any."""
        cluster, namespace, pod = self._cluster, review.subject.namespace, review.object
        try:
            claims, _ = read_claims(pod)
            found = await cluster.read_claims(namespace, claims) if claims else {}
            amounts = cluster.amounts(namespace, pod)
            terms = (self._mode, annotations, cluster.fleet(), self._policy, amounts, found)
            return rewrite(pod, *terms)
        except InvalidError as error:
            sentence = "request.object is not shaped like a pod"
            raise BadReviewError("no-pod", sentence, review.subject.uid) from error

    def _let_in(
        self,
        review: Review,
        reason: str,
        decision: Rewrite | Unchanged,
        results: Sequence[CheckResult],
    ) -> Reply:
        if isinstance(decision, Rewrite):
            operations, what, why = decision.operations, "summary", decision.summary
        else:
            operations, what, why = [], "reason", decision.reason
        said = {key: text for each in results for key, text in each.annotations.items()}
        if said:
            operations = [*operations, *_operations(review.object, said)]
        result = ReviewResult.REWRITTEN if operations else ReviewResult.UNCHANGED
        warnings = (*decision.warnings, *(text for each in results for text in each.warnings))
        if warnings:
            warnings += self._links
        subject, audit = review.subject, {"result": result.value, what: why}
        outcome = ReviewOutcome(result, subject, reason, why, len(operations), len(warnings))
        return Reply(OK, write_allowed(subject.uid, operations, warnings, audit), outcome)

    def _refused(self, subject: Subject, reason: str, message: str) -> Reply:
        result, said = ReviewResult.REFUSED, " ".join((message, *self._links))
        body = write_denied(subject.uid, said, (), {"result": result.value})
        return Reply(OK, body, ReviewOutcome(result, subject, reason, message))


# The API server does not check annotations that come by this way, and a pod over its limit of
# 256 KiB could never report its status again: leave room for what others add.
_MOST_ANNOTATION_BYTES = 240 * 1024


class BindingHook:
    """
    Puts the values of a pod's settings, exact for the node it is being bound to, on its Binding.
    """

    expected = BINDINGS

    def __init__(self, cluster: ClusterView, policy: WebhookPolicy) -> None:
        self._cluster = cluster
        self._policy = policy

    async def answer(self, review: Review) -> Reply:
        try:
            async with asyncio.timeout(self._cluster.deadline_seconds):
                values = await self._values(review)
        except TimeoutError:
            why = ("api-slow", "pod and claims took too long to read")
            return _as_it_is(review.subject, *why, _dropped(review.object))
        except UnknownError as error:
            return _as_it_is(review.subject, error.reason, str(error), _dropped(review.object))
        operations = [*_dropped(review.object), *_operations(review.object, values)]
        result = ReviewResult.EXACT if names.NODE in values else ReviewResult.CAREFUL
        audit = {"result": result.value}
        return Reply(
            OK,
            write_allowed(review.subject.uid, operations, (), audit),
            ReviewOutcome(result, review.subject, operations=len(operations)),
        )

    def unread(self, uid: str, why: str) -> Reply:
        return _as_it_is(Subject(uid), "too-many", why, [])

    async def _values(self, review: Review) -> Mapping[str, str]:
        binding = review.object
        node_name = _target(binding)
        metadata = part_of(binding, "metadata")
        uid = metadata.get("uid")
        if not isinstance(uid, str) or not uid:
            raise UnknownError("binding-without-uid", "")
        pod = await self._cluster.read_pod(review.subject.namespace, review.subject.name)
        if part_of(pod, "metadata").get("uid") != uid:
            raise UnknownError("pod-replaced", "")
        if names.PLAN not in part_of(part_of(pod, "metadata"), "annotations"):
            raise UnknownError("no-plan", "")
        annotations = _merged(pod, part_of(metadata, "annotations"))
        node = await self._node(node_name)
        values = await self._exact(pod, review.subject.namespace, node)
        size = sum(
            len(f"{key}{value}".encode()) for key, value in {**annotations, **values}.items()
        )
        if size > _MOST_ANNOTATION_BYTES:
            raise UnknownError("annotations-too-large", f"the pod would have {size} bytes of them")
        return values

    async def _node(self, name: str) -> GpuNode:
        """
        Return the node; one that offers nothing may have a driver that publishes slices, or was
        born a moment ago.
        """
        node = self._cluster.node(name) or await self._cluster.read_node(name)
        return node or GpuNode(name, {}, frozenset(), (), self._policy.default.units)

    async def _exact(self, pod: JsonObject, namespace: str, node: GpuNode) -> Mapping[str, str]:
        try:
            claims, _ = read_claims(pod)
            found: ClaimsFound = {}
            cards: Mapping[str, Card] = {}
            if claims:  # at the same time, since somebody waits for both
                found, cards = await asyncio.gather(
                    self._cluster.read_claims(namespace, claims),
                    self._cluster.read_devices(node.name),
                )
            values = exact_values(pod, node, self._policy, found, cards)
        except GpufenceError as error:
            raise UnknownError("unreadable-pod", str(error)) from error
        if not values and not (node.resources or claims):
            raise UnknownError("node-without-gpu", f"node {node.name} offers no GPU resource")
        if not values:
            raise UnknownError("no-values", f"nothing to compute for node {node.name}")
        return values


def _merged(pod: JsonObject, brought: JsonObject) -> JsonObject:
    """
    Give the pod what its scheduler puts on the Binding, as the API server will in a moment: some
    say so which card they chose. What is ours stays as it is on the pod.
    """
    said = {key: value for key, value in brought.items() if not _is_decided(key)}
    annotations: JsonObject = pod["metadata"]["annotations"]
    annotations |= said
    return annotations


def _is_decided(key: str) -> bool:
    """
    Return whether a key was decided when the pod was made: what it may hold, and all of gpufence's.
    """
    return names.PREFIX in key or declares(key) or key.startswith(names.KAI_OF_CONTAINER)


def _dropped(binding: JsonObject) -> list[JsonObject]:
    """
    Take from a Binding what would change such a key on the pod; some schedulers copy all there is.
    """
    brought = part_of(part_of(binding, "metadata"), "annotations")
    return [
        {"op": "remove", "path": f"/metadata/annotations/{escape_pointer(key)}"}
        for key in brought
        if _is_decided(key)
    ]


def _operations(binding: JsonObject, values: Mapping[str, str]) -> list[JsonObject]:
    if not isinstance(binding["metadata"].get("annotations"), dict):
        return [{"op": "add", "path": "/metadata/annotations", "value": dict(values)}]
    return [
        {
            "op": "add",
            "path": "/metadata/annotations/" + escape_pointer(key),
            "value": value,
        }
        for key, value in values.items()
    ]


def _target(binding: JsonObject) -> str:
    target = part_of(binding, "target")
    name = target.get("name")
    if target.get("kind", "Node") not in {"", "Node"} or not isinstance(name, str) or not name:
        raise UnknownError("no-node", "")
    return name


def _as_it_is(
    subject: Subject, reason: str, detail: str, operations: Sequence[JsonObject]
) -> Reply:
    """Let a binding pass without values of ours, and without what would take their place."""
    audit = {"result": ReviewResult.SKIPPED.value, "reason": reason}
    outcome = ReviewOutcome(
        ReviewResult.SKIPPED, subject, reason, detail, operations=len(operations)
    )
    return Reply(OK, write_allowed(subject.uid, operations, (), audit), outcome)
