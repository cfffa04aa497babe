"""Installations for the doctor: healthy, bare, sick in every way, and hidden from whoever asks."""

from dataclasses import replace
from typing import Any

from gpufence import names
from kubectl_gpufence.cluster_view import by_node
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.verbs.doctor.installation import (
    HOOKS,
    POLICIES,
    Installation,
    LabelledNamespace,
    MaybeHidden,
)
from tests.support.plugin import (
    agent,
    card_row,
    raw_pod,
    seen_node,
    seen_pod,
    snapshot,
)

NOW = 1_800_000_000.0
DAY = 86_400.0
HIDDEN: MaybeHidden[Any] = MaybeHidden(hidden="you may not see it")
YEARS = ((NOW - DAY, NOW + 3650 * DAY),)


def version(text: str) -> MaybeHidden[Any]:
    return MaybeHidden({"gitVersion": text})


def deployment(ready: int | None, wanted: int | None = 2) -> MaybeHidden[Any]:
    return MaybeHidden({"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}})


def slices(ready: int, unready: int = 0) -> MaybeHidden[Any]:
    states = [True] * ready + [False] * unready
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": item}} for item in states]
    return MaybeHidden([{"endpoints": endpoints}])


def configuration(*hooks: str, failure: str = "Ignore") -> MaybeHidden[Any]:
    return MaybeHidden({"webhooks": [{"name": name, "failurePolicy": failure} for name in hooks]})


def healthy() -> Installation:
    there: dict[str, MaybeHidden[Any]] = {name: MaybeHidden({}) for name in POLICIES}
    return Installation(
        now=NOW,
        version=version("v1.37.1"),
        rights={"list pods": True, "list nodes": True},
        system=MaybeHidden({}),
        deployment=deployment(2),
        slices=slices(2),
        configuration=configuration(*HOOKS),
        trusted=dict.fromkeys(HOOKS, YEARS),
        serving={"gpufence-webhook-a": 60 * DAY},
        policies=there,
        bindings=there,
        switch=MaybeHidden({"data": {"max-mode": "evict"}}),
        nodes=MaybeHidden(
            {"gpu-1": seen_node(), "cpu-1": replace(seen_node("cpu-1"), gpu=None, cards=None)}
        ),
        agents=MaybeHidden(by_node([agent(snapshot())])),
        namespaces=MaybeHidden(
            [LabelledNamespace("team-a", "evict"), LabelledNamespace("default", None)]
        ),
        pods=MaybeHidden([seen_pod()]),
    )


def bare() -> Installation:
    nothing: dict[str, MaybeHidden[Any]] = {name: MaybeHidden() for name in POLICIES}
    return Installation(
        now=NOW,
        version=version("v1.29.4"),
        slices=MaybeHidden([]),
        policies=nothing,
        bindings=nothing,
        nodes=MaybeHidden({}),
        agents=MaybeHidden({}),
        namespaces=MaybeHidden([]),
        pods=MaybeHidden([]),
    )


def sick() -> Installation:
    """Everything is there, and nothing as it should be."""
    broken = raw_pod(name="damaged", uid="u2")
    broken["metadata"]["annotations"][names.PLAN] = "{"
    trusted = {HOOKS[0]: (), HOOKS[1]: None, HOOKS[2]: ((NOW - 2 * DAY, NOW - DAY),)}
    agents = (
        agent(snapshot(fresh=False, brake="just started", cards=(card_row(trouble="lost"),))),
        agent(snapshot(stale_seconds=200.0), node="gpu-2"),
        agent(None, "its pod is not ready", node="gpu-0", ready=False),
        agent(snapshot(stale_seconds=None), node="gpu-3"),
        agent(snapshot(trouble="no driver", cards=()), node="gpu-4"),
        agent(None, "it does not answer in time", node="gpu-5"),
        agent(None, "you may not ask agents", node="gpu-6", denied=True),
        agent(snapshot(), node="gpu-7"),
        agent(snapshot(), node="gpu-8"),
    )
    nodes = {f"gpu-{place}": seen_node(f"gpu-{place}") for place in range(1, 10)}
    nodes["gpu-8"] = replace(nodes["gpu-8"], cards=None)
    nodes["gpu-7"] = replace(nodes["gpu-7"], cards=None, cards_trouble="cannot be read")
    return replace(
        healthy(),
        version=version("v1.33.0-gke.1"),
        rights={"list pods": True, "list nodes": False},
        deployment=deployment(1),
        slices=slices(0, 1),
        configuration=configuration(*HOOKS[:3], failure="Fail"),
        trusted=trusted,
        serving={"a": None, "b": -1.0, "c": DAY},
        policies={POLICIES[0]: MaybeHidden({}), POLICIES[1]: MaybeHidden()},
        bindings={POLICIES[0]: MaybeHidden(), POLICIES[1]: MaybeHidden()},
        switch=MaybeHidden({"data": {"max-mode": "shout"}}),
        nodes=MaybeHidden(nodes),
        agents=MaybeHidden(by_node(agents)),
        namespaces=MaybeHidden(
            [LabelledNamespace("team-a", "evict"), LabelledNamespace("team-b", "Evict")]
        ),
        pods=MaybeHidden([seen_pod(mode=None), see_pod(broken, None)]),
    )


def denied() -> Installation:
    """Nothing may be seen."""
    hidden: dict[str, MaybeHidden[Any]] = dict.fromkeys(POLICIES, HIDDEN)
    return Installation(
        now=NOW,
        version=version(""),
        system=HIDDEN,
        deployment=HIDDEN,
        slices=HIDDEN,
        configuration=HIDDEN,
        policies=hidden,
        bindings=hidden,
        switch=HIDDEN,
        nodes=HIDDEN,
        agents=HIDDEN,
        namespaces=HIDDEN,
        pods=HIDDEN,
    )
