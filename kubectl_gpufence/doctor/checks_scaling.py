"""
PURE. Who scales owners of GPUs, and by what: checks of ScaledObjects and HorizontalPodAutoscalers.

docs/scaling.md says why each of these does harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.findings import Finding, look, ok, unknown
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.text import duration
from kubectl_gpufence.table import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.installation import Installation

SCALED_OBJECT: Final = "ScaledObject"
_AUTOSCALERS: Final = "autoscalers"
_ACTIVITY: Final = "/v1/activity/"
_POLL_SECONDS: Final = 30
_COOLDOWN_SECONDS: Final = 300
_MOST_REPLICAS: Final = 100
_COARSE_SECONDS: Final = 10.0
_ASK: Final = "ask an administrator to run this"


class Scaler(NamedTuple):
    """
    An autoscaler of an owner whose pods ask for GPUs, in a fenced namespace. `start_seconds` is the
    longest that one of its pods took to be ready; `most` how many replicas there are or fit. None
    is what nobody knows.
    """

    kind: str
    namespace: str
    name: str
    target: str
    spec: Object
    start_seconds: float | None = None
    most: int | None = None

    @property
    def shown(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def check_scaling(installation: Installation) -> Iterator[Finding]:
    """Find autoscalers that take workers away which work, or ask for cards that nobody has."""
    scalers = installation.scalers
    if scalers.hidden:
        yield unknown(_AUTOSCALERS, scalers.hidden, _ASK)
        return
    well = 0
    for scaler in scalers.value or []:
        findings = list(_of_object(scaler) if scaler.kind == SCALED_OBJECT else _of_hpa(scaler))
        well += not findings
        yield from findings
    if well:
        count = counted(well, "autoscaler")
        yield ok(_AUTOSCALERS, f"{count} of GPU owners: what waits counts, and what works")


def _of_object(scaler: Scaler) -> Iterator[Finding]:
    spec = scaler.spec
    triggers = objects(spec.get("triggers"), "spec.triggers")
    advanced = as_object(spec.get("advanced"), "spec.advanced")
    yield from _busy_trigger(scaler, triggers)
    for trigger in triggers:
        yield from _of_trigger(scaler, trigger)
    if as_object(advanced.get("scalingModifiers"), "scalingModifiers").get("formula"):
        yield _finding(
            scaler,
            "has scalingModifiers: one trigger that fails makes it inactive, so that a failure of "
            "the busy trigger keeps a queue from waking its workers",
            "take the formula away: an autoscaler takes the larger of two triggers by itself",
        )
    if spec.get("fallback"):
        yield _finding(
            scaler,
            "has a fallback: while nobody knows who works, it scales to a number all the same",
            "take it away: without one nothing is scaled down while a trigger fails",
        )
    yield from _times(scaler, triggers)
    yield from _ceiling(scaler, _number(spec, "maxReplicaCount", _MOST_REPLICAS), "maxReplicaCount")


def _busy_trigger(scaler: Scaler, triggers: list[Object]) -> Iterator[Finding]:
    urls = [as_text(_metadata(item).get("url"), "url") for item in triggers]
    if not any(_ACTIVITY in url for url in urls):
        yield _finding(
            scaler,
            "counts what waits and not what works: a pool that keeps up looks as if nobody needed "
            "it, and a worker that is busy for longer than the cooldown is taken away",
            f"add the trigger busy, as `kubectl gpufence scale` prints it for {scaler.target}",
        )


def _of_trigger(scaler: Scaler, trigger: Object) -> Iterator[Finding]:
    kind = as_text(trigger.get("type"), "type")
    if trigger.get("metricType") == "Value" and kind not in {"cpu", "memory"}:
        yield _finding(
            scaler,
            f"trigger {kind} has metricType Value with a total: an autoscaler then multiplies by "
            "the replicas that are there, again and again",
            "write metricType: AverageValue",
        )
    ignored = str(_metadata(trigger).get("ignoreNullValues", "true")).lower()
    if kind == "prometheus" and ignored != "false":
        yield _finding(
            scaler,
            "takes nothing heard from Prometheus for an empty queue",
            'write ignoreNullValues: "false" in the metadata of the trigger',
        )


def _times(scaler: Scaler, triggers: list[Object]) -> Iterator[Finding]:
    spec = scaler.spec
    cooldown = _number(spec, "cooldownPeriod", _COOLDOWN_SECONDS)
    if scaler.start_seconds is not None and cooldown < scaler.start_seconds:
        yield _finding(
            scaler,
            f"has a cooldownPeriod of {duration(cooldown)}, and a worker takes "
            f"{duration(scaler.start_seconds)} to start: it may go before it has begun",
            "write one that is longer, such as 900",
        )
    if not _number(spec, "minReplicaCount", 0) and not _number(spec, "initialCooldownPeriod", 0):
        yield _finding(
            scaler,
            "has no initialCooldownPeriod: made anew, it scales to zero at once",
            "write the same as cooldownPeriod",
        )
    polled, target = _number(spec, "pollingInterval", _POLL_SECONDS), _target(triggers)
    if polled > target:
        yield _finding(
            scaler,
            f"looks at its queue every {duration(polled)} for a target of {duration(target)}",
            f"write pollingInterval: {max(int(min(target, 5)), 1)}",
        )


def _target(triggers: list[Object]) -> float:
    """Return how many seconds may wait, as far as a trigger says it in seconds."""
    for trigger in triggers:
        if trigger.get("type") == "prometheus" and trigger.get("name") == "backlog":
            try:
                return float(str(_metadata(trigger).get("threshold")))
            except ValueError:
                break
    return _COARSE_SECONDS


def _of_hpa(scaler: Scaler) -> Iterator[Finding]:
    metrics = objects(scaler.spec.get("metrics"), "spec.metrics")
    for metric in metrics:
        for kind in ("external", "object"):
            target = as_object(as_object(metric.get(kind), kind).get("target"), "target")
            if target.get("type") == "Value":
                yield _finding(
                    scaler,
                    f"has an {kind} metric of type Value with a total: it multiplies by the "
                    "replicas that are there, again and again",
                    "write type: AverageValue",
                )
    asked = [as_object(item.get("external"), "external") for item in metrics]
    named = [as_text(as_object(item.get("metric"), "metric").get("name"), "name") for item in asked]
    if any(named) and not any("busy" in name for name in named):
        yield _finding(
            scaler,
            "counts what waits and not what works: a pool that keeps up looks as if nobody needed "
            "it",
            "add an external metric of replicas at work whose name has busy in it",
        )
    yield from _ceiling(scaler, _number(scaler.spec, "maxReplicas", 1), "maxReplicas")


def _ceiling(scaler: Scaler, wanted: int, field: str) -> Iterator[Finding]:
    if scaler.most is not None and wanted > scaler.most:
        yield _finding(
            scaler,
            f"has {field} {wanted}, and there are or fit {scaler.most} at the moment: what is "
            "beyond only waits",
            f"write {scaler.most}, or make room",
        )


def _finding(scaler: Scaler, text: str, remedy: str) -> Finding:
    return look(_AUTOSCALERS, f"{scaler.shown} of {scaler.target} {text}", remedy)


def _metadata(trigger: Object) -> Object:
    return as_object(trigger.get("metadata"), "metadata")


def _number(spec: Object, field: str, usual: int) -> int:
    value = spec.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else usual
