"""What the doctor finds about autoscalers of owners of GPUs."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence.findings import Level
from kubectl_gpufence.doctor import examine
from kubectl_gpufence.doctor.checks_scaling import Scaler, check_scaling
from kubectl_gpufence.doctor.installation import MaybeHidden
from kubectl_gpufence.scale.manifest import bare
from kubectl_gpufence.scale.wish import documents
from tests.support import sick
from tests.support.plugin_cases import measured, scaled

PRINTED: dict[str, Any] = bare(documents(measured())[-1])["spec"]
BUSY = PRINTED["triggers"][1]


def object_of(start: float | None = 60.0, most: int | None = 6, **changes: Any) -> Scaler:
    """Build what `scale` prints, with something changed; None takes a field away."""
    spec = {key: value for key, value in (PRINTED | changes).items() if value is not None}
    return Scaler("ScaledObject", "vision", "quality", "Deployment/quality", spec, start, most)


def trigger(**changes: Any) -> list[dict[str, Any]]:
    return [PRINTED["triggers"][0] | changes, BUSY]


def autoscaler(*metrics: dict[str, Any], most: int = 4) -> Scaler:
    spec = {"maxReplicas": most, "metrics": list(metrics)}
    return Scaler("HorizontalPodAutoscaler", "vision", "q", "Deployment/q", spec, None, 4)


def external(name: str, kind: str = "AverageValue") -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": name}, "target": {"type": kind}}}


def found(*scalers: Scaler) -> list[str]:
    installation = replace(sick.healthy(), scalers=MaybeHidden(list(scalers)))
    return [item.text for item in check_scaling(installation) if item.level is Level.LOOK]


def test_what_is_printed_is_well() -> None:
    """The doctor finds nothing in what the plugin itself prints."""
    other = object_of()._replace(spec=bare(documents(scaled())[-1])["spec"])
    installation = replace(sick.healthy(), scalers=MaybeHidden([object_of(), other]))

    assert [] == found(object_of(), other)
    assert "2 autoscalers of GPU owners" in " ".join(item.text for item in examine(installation))


@pytest.mark.parametrize(
    ("scaler", "text"),
    [
        (object_of(triggers=trigger(metricType="Value")), "metricType Value with a total"),
        (object_of(cooldownPeriod=30), "a cooldownPeriod of 30s, and a worker takes 1m"),
        (object_of(cooldownPeriod=None, start=400.0), "a cooldownPeriod of 5m"),
        (object_of(initialCooldownPeriod=None), "scales to zero at once"),
        (object_of(maxReplicaCount=7), "has maxReplicaCount 7, and there are or fit 6"),
        (object_of(maxReplicaCount=None), "has maxReplicaCount 100"),
        (object_of(triggers=PRINTED["triggers"][:1]), "counts what waits and not what works"),
        (object_of(triggers=trigger(metadata={"query": "x"})), "takes nothing heard"),
        (object_of(pollingInterval=None), "every 30s for a target of 3s"),
        (object_of(pollingInterval=11, triggers=[BUSY]), "every 11s for a target of 10s"),
        (
            object_of(
                pollingInterval=11,
                triggers=trigger(metadata={"threshold": "odd", "ignoreNullValues": "false"}),
            ),
            "for a target of 10s",
        ),
        (object_of(advanced={"scalingModifiers": {"formula": "a + b"}}), "has scalingModifiers"),
        (object_of(fallback={"replicas": 1}), "has a fallback"),
        (autoscaler(external("backlog")), "counts what waits and not what works"),
        (autoscaler(external("busy", "Value")), "an external metric of type Value"),
        (autoscaler(external("busy"), most=5), "has maxReplicas 5, and there are or fit 4"),
    ],
)
def test_what_does_harm_is_found(scaler: Scaler, text: str) -> None:
    """Each mistake alone is named, once, with the owner that it concerns."""
    (said,) = found(scaler)

    assert text in said
    assert f"of {scaler.target} " in said


@pytest.mark.parametrize(
    "scaler",
    [
        object_of(start=None, most=None, cooldownPeriod=1, maxReplicaCount=99),
        object_of(minReplicaCount=1, initialCooldownPeriod=None),
        object_of(triggers=[BUSY, {"type": "cpu", "metricType": "Value"}]),
        object_of(advanced={"scalingModifiers": {}}),
        object_of(minReplicaCount=True),
        autoscaler(external("backlog"), external("gpufence:busy_replicas")),
        autoscaler({"type": "Resource"}),
    ],
)
def test_what_is_unknown_or_harmless_is_not_found(scaler: Scaler) -> None:
    """Nothing is said of what nobody knows, nor of what does no harm."""
    assert [] == found(scaler)


def test_hidden_autoscalers_are_said() -> None:
    """Who may not see them is told so."""
    installation = replace(sick.healthy(), scalers=MaybeHidden(hidden="you may not list them"))
    (finding,) = check_scaling(installation)

    assert (Level.UNKNOWN, "you may not list them") == (finding.level, finding.text)
