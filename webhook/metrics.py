"""
What the webhook counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.exposition import write_page
from webhook.registry import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpufence.exposition import Metric
    from webhook.outcome import Outcome

REQUESTS: Final = "gpufence_webhook_requests_total"
DURATION: Final = "gpufence_webhook_request_duration_seconds"
WARNINGS: Final = "gpufence_webhook_warnings_total"
LOADS: Final = "gpufence_webhook_certificate_loads_total"
EXPIRY: Final = "gpufence_webhook_certificate_expiry_seconds"
READY: Final = "gpufence_webhook_ready"
NODES: Final = "gpufence_webhook_gpu_nodes"
NAMESPACES: Final = "gpufence_webhook_namespaces"
SILENCE: Final = "gpufence_webhook_cluster_silence_seconds"

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """
    The webhook's numbers and the page they stand on.
    """

    def __init__(self, hooks: tuple[str, ...]) -> None:
        self._requests = Counter(
            REQUESTS, "Requests by hook and what became of them.", ("hook", "result", "reason")
        )
        self._duration = Histogram(
            DURATION, "Time from the whole body to the answer.", "hook", _BOUNDS
        )
        self._warnings = Counter(WARNINGS, "Warnings sent to the creators of pods.", ("hook",))
        self.loads = Counter(
            LOADS, "Certificates that were found, by whether they went live.", ("result",)
        )
        self._gauges: list[Metric] = []
        for hook in hooks:
            self._duration.start(hook)
            self._warnings.start(hook)
        for result in ("swapped", "refused"):
            self.loads.start(result)

    def add_gauge(
        self,
        name: str,
        text: str,
        read: Callable[[], float | Mapping[str, float] | None],
        label: str = "",
    ) -> None:
        """
        Show a number that somebody else knows.
        """
        self._gauges.append(Gauge(name, text, read, label))

    def count(self, hook: str, outcome: Outcome, seconds: float) -> None:
        self._requests.add(hook, outcome.result.value, outcome.reason)
        self._duration.observe(hook, seconds)
        for _ in range(outcome.warnings):
            self._warnings.add(hook)

    def page(self) -> str:
        return write_page(
            [self._requests, self._duration, self._warnings, self.loads, *self._gauges]
        )
