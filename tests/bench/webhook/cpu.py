"""
What one review costs in CPU, from the bytes that came to the bytes that go.
"""

from __future__ import annotations

import asyncio
import timeit
from typing import TYPE_CHECKING

from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.bench._figures import Figure, at_most
from tests.bench.webhook import sample
from webhook.cluster import WithoutCluster
from webhook.pods import PodHook
from webhook.policy import WebhookPolicy
from webhook.review import PODS, read_review
from webhook.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.outcome import Reply

BUDGET_MICROSECONDS = 90.0
CALLS, ROUNDS = 1000, 15


def measure() -> list[Figure]:
    """
    Measure the whole and its parts, best of several rounds.
    """
    body = sample.review()
    policy = WebhookPolicy(default=CandidateCard(Units(gpushare_bytes=GIB), 15360 * MIB, (7, 5)))
    cluster = WithoutCluster()
    hook = PodHook(Mode.CAP, cluster, policy)

    def whole() -> Reply:
        answer = hook.answer(read_review(body, PODS))
        try:
            answer.send(None)
        except StopIteration as done:
            reply: Reply = done.value
            return reply
        raise AssertionError("nothing is waited for")

    item = read_review(body, PODS).object
    size = f"{len(body) / 1000:.1f} KB"
    return [
        at_most(f"review of {size}, decode to encode", _best(whole), "us", BUDGET_MICROSECONDS),
        Figure("  of that: decode", _best(lambda: read_review(body, PODS)), "us"),
        Figure(
            "  of that: rewrite",
            _best(lambda: rewrite(item, Mode.CAP, {}, cluster.fleet(), policy)),
            "us",
        ),
        Figure("answer to it", len(asyncio.run(hook.answer(read_review(body, PODS))).body), "B"),
    ]


def _best(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6
