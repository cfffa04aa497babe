"""Answer reviews of pods that are created in a fenced namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gpufence.errors import InvalidError
from gpufence.mode import Mode
from gpufence.pods import read_claims
from webhook.claims import UnknownError
from webhook.outcome import Reply, ReviewOutcome, ReviewResult, Subject
from webhook.review import PODS, BadReviewError, write_allowed, write_denied
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.claims import ClaimsFound
    from webhook.cluster import ClusterView
    from webhook.policy import WebhookPolicy
    from webhook.review import Review

OK = 200
_NO_ANNOTATIONS: Mapping[str, str] = {}


class PodHook:
    """
    Rewrites the pods of namespaces in one mode, which the API server chose by the path it called.
    """

    expected = PODS

    def __init__(self, mode: Mode, cluster: ClusterView, policy: WebhookPolicy) -> None:
        self._mode = mode
        self._cluster = cluster
        self._policy = policy

    async def answer(self, review: Review) -> Reply:
        """Answer one review. Raises BadReviewError for an object that is no pod."""
        annotations = self._cluster.namespace(review.subject.namespace)
        reason = ""
        if annotations is None:
            annotations, reason = await self._read_annotations(review.subject.namespace)
        claims = await self._read_claims(review)
        return self._decide(review, annotations, reason, claims)

    def unread(self, uid: str, why: str) -> Reply:
        """Refuse in evict what nobody can read: it would be let in without a limit."""
        refused = self._mode is Mode.EVICT
        result = ReviewResult.REFUSED if refused else ReviewResult.UNCHANGED
        outcome = ReviewOutcome(result, Subject(uid), "too-many", why)
        audit = {"result": result.value}
        if refused:
            return Reply(
                OK, write_denied(uid, f"gpufence refuses this pod: {why}", (), audit), outcome
            )
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

    async def _read_claims(self, review: Review) -> ClaimsFound:
        """
        Ask for the claims of a pod that has any; what comes of no pod is told by who reads it.
        """
        try:
            claims = read_claims(review.object)
        except InvalidError:
            return {}
        return await self._cluster.read_claims(review.subject.namespace, claims) if claims else {}

    def _decide(
        self, review: Review, annotations: Mapping[str, str], reason: str, claims: ClaimsFound
    ) -> Reply:
        subject = review.subject
        try:
            decision = rewrite(
                review.object,
                self._mode,
                annotations,
                self._cluster.fleet(),
                self._policy,
                self._cluster.profile(subject.namespace, review.object),
                claims,
            )
        except InvalidError as error:
            sentence = "request.object is not shaped like a pod"
            raise BadReviewError("no-pod", sentence, subject.uid) from error
        match decision:
            case Rewrite(operations=operations, warnings=warnings, summary=summary):
                body = write_allowed(
                    subject.uid,
                    operations,
                    warnings,
                    {"result": ReviewResult.REWRITTEN.value, "summary": summary},
                )
                outcome = ReviewOutcome(
                    ReviewResult.REWRITTEN, subject, reason, summary, len(operations), len(warnings)
                )
            case Unchanged(reason=why, warnings=warnings):
                body = write_allowed(
                    subject.uid,
                    (),
                    warnings,
                    {"result": ReviewResult.UNCHANGED.value, "reason": why},
                )
                outcome = ReviewOutcome(
                    ReviewResult.UNCHANGED, subject, reason, why, warnings=len(warnings)
                )
            case Refusal(message=message):
                body = write_denied(
                    subject.uid, message, (), {"result": ReviewResult.REFUSED.value}
                )
                outcome = ReviewOutcome(ReviewResult.REFUSED, subject, reason, message)
            case _:
                assert_never(decision)
        return Reply(OK, body, outcome)
