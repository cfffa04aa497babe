"""What one review costs in CPU, from the bytes that came to the bytes that go."""

import asyncio
import copy
import gc
import math
import time
import timeit
from collections.abc import Callable

from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.bench.webhook import sample
from tests.support.observing import Figure, at_most
from webhook.cluster import ClusterView
from webhook.frameworks.table import blank_settings
from webhook.hooks import PodHook
from webhook.policy import WebhookPolicy
from webhook.review import PODS, JsonObject, Reply, read_review
from webhook.rewrite import rewrite
from webhook.rewrite.injection import own_settings

FIRST_MICROSECONDS, AGAIN_MICROSECONDS = 140.0, 90.0
CALLS, ROUNDS = 100, 150
PODS_A_ROUND = 100


def measure() -> list[Figure]:
    """Measure the whole and its parts, best of several rounds."""
    body = sample.review()
    policy = WebhookPolicy(default=CandidateCard(Units(gpushare_bytes=GIB), 15360 * MIB, (7, 5)))
    cluster = ClusterView()
    hook = PodHook(Mode.CAP, cluster, policy)

    def whole() -> Reply:
        answer = hook.answer(read_review(body, PODS))
        try:
            answer.send(None)
        except StopIteration as done:
            reply: Reply = done.value
            return reply
        raise AssertionError("nothing is waited for")

    def rewritten(pods: list[JsonObject], *, forgetting: bool = False) -> float:
        """Rewrite copies of pods, since it changes them; return the best mean."""
        best = math.inf
        for _ in range(ROUNDS):
            fresh = [copy.deepcopy(pod) for pod in pods]
            blank_settings.cache_clear()
            own_settings.cache_clear()
            gc.collect()
            began = time.perf_counter()
            for pod in fresh:
                if forgetting:
                    blank_settings.cache_clear()
                    own_settings.cache_clear()
                rewrite(pod, Mode.CAP, {}, cluster.fleet(), policy)
            best = min(best, time.perf_counter() - began)
        return best / len(pods) * 1e6

    alike = [read_review(body, PODS).object] * PODS_A_ROUND
    different = [read_review(sample.different(n), PODS).object for n in range(PODS_A_ROUND)]
    first, again = rewritten(alike, forgetting=True), rewritten(alike)
    return [
        at_most("rewrite of a pod never seen before", first, "us", FIRST_MICROSECONDS),
        at_most("rewrite of a pod with a limit seen before", again, "us", AGAIN_MICROSECONDS),
        Figure("rewrite of pods of which each is different", rewritten(different), "us"),
        Figure(f"review of {len(body) / 1000:.1f} KB, decode to encode", _best(whole), "us"),
        Figure("  of that: decode", _best(lambda: read_review(body, PODS)), "us"),
        Figure("answer to it", len(asyncio.run(hook.answer(read_review(body, PODS))).body), "B"),
    ]


def _best(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6
