"""
PURE. What somebody wants scaled, and the objects of KEDA that do it.

Two plain triggers, each of which an autoscaler weighs alone: seconds of work that waits, and
replicas at work. docs/scaling.md says why it takes both, and what becomes of either when the other
fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpufence.names import CONTROLLER, SYSTEM_NAMESPACE
from kubectl_gpufence.scale.manifest import Reasoned

if TYPE_CHECKING:
    from kube.kinds import ApiKind

ACCOUNT: Final = "gpufence-activity"
UTILIZATION: Final = 0.85
"""
How much of the time a worker should be at work. Replicas then are the load and a sixth; what comes
at once is the other trigger's to see.
"""
_POLL_SECONDS: Final = 5
_STEADY_SECONDS: Final = 120
_LEAST_SECONDS_PER_MESSAGE: Final = 0.001
_RATE: Final = "10m"
_AUTHORIZATION: Final = "rbac.authorization.k8s.io"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many replicas there may be, and who says so."""

    replicas: int
    why: str


@dataclass(frozen=True, slots=True)
class Queue:
    """
    Where messages wait. `kind` is `rabbitmq`, asked by KEDA with the address in a Secret's key, or
    `prometheus`, by an address and, where it is not RabbitMQ's own metric, a query for the messages
    that wait and one for the messages done each second.
    """

    name: str
    kind: str = "rabbitmq"
    secret: str = "rabbitmq"  # noqa: S105 - a name
    key: str = "host"
    prometheus: str = ""
    waiting: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """
    One owner and its queue; times in seconds. `message` is how long one takes, None where that is
    to be measured, with `guess` until then. `activity` is where the controller answers.
    """

    kind: ApiKind
    namespace: str
    name: str
    queue: Queue
    ceiling: Ceiling
    target: float
    message: float | None
    guess: float = 1.0
    least: int = 0
    cooldown: int = 900
    activity: str = f"http://{CONTROLLER}.{SYSTEM_NAMESPACE}:8080"
    asks_token: bool = True


def documents(wish: Wish) -> list[Document]:
    """Return the objects to apply, in order."""
    made: list[Document] = []
    if wish.asks_token:
        made += _account(wish)
    if wish.queue.kind == "rabbitmq":
        made.append(_broker(wish))
    return [*made, _scaled_object(wish)]


def _named(wish: Wish, name: str) -> Document:
    return {"name": name, "namespace": wish.namespace}


def _account(wish: Wish) -> list[Document]:
    secret, role = f"{ACCOUNT}-token", f"{ACCOUNT}-{wish.name}"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(wish, ACCOUNT)},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _named(wish, secret)
            | {
                "annotations": Reasoned(
                    {"kubernetes.io/service-account.name": ACCOUNT},
                    "The token with which KEDA asks how busy the workers are. It may read that one "
                    "scale, and nothing else.",
                )
            },
            "type": "kubernetes.io/service-account-token",
        },
        {
            "apiVersion": f"{_AUTHORIZATION}/v1",
            "kind": "Role",
            "metadata": _named(wish, role),
            "rules": [
                {
                    "apiGroups": [wish.kind.group],
                    "resources": [f"{wish.kind.plural}/scale"],
                    "resourceNames": [wish.name],
                    "verbs": ["get"],
                }
            ],
        },
        {
            "apiVersion": f"{_AUTHORIZATION}/v1",
            "kind": "RoleBinding",
            "metadata": _named(wish, role),
            "roleRef": {"apiGroup": _AUTHORIZATION, "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": wish.namespace}],
        },
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "TriggerAuthentication",
            "metadata": _named(wish, ACCOUNT),
            "spec": {"secretTargetRef": [{"parameter": "token", "name": secret, "key": "token"}]},
        },
    ]


def _broker(wish: Wish) -> Document:
    queue = wish.queue
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": _named(wish, f"{wish.name}-queue"),
        "spec": {
            "secretTargetRef": [
                Reasoned(
                    {"parameter": "host", "name": queue.secret, "key": queue.key},
                    f"Secret {queue.secret}, which you make: its key {queue.key} is the broker's "
                    "address, such as amqp://user:password@rabbitmq.messages:5672/",
                )
            ]
        },
    }


def _scaled_object(wish: Wish) -> Document:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": _named(wish, wish.name),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": wish.kind.api_version,
                "kind": wish.kind.kind,
                "name": wish.name,
            },
            "pollingInterval": Reasoned(
                min(_POLL_SECONDS, max(1, int(wish.target))),
                f"KEDA's 30 s would be {30 / wish.target:.0f} targets",
            ),
            "cooldownPeriod": Reasoned(wish.cooldown, "to zero after so long without any trigger"),
            "initialCooldownPeriod": Reasoned(
                wish.cooldown, "or a new one is scaled to zero at once"
            ),
            "minReplicaCount": wish.least,
            "maxReplicaCount": Reasoned(wish.ceiling.replicas, wish.ceiling.why),
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
            "triggers": [_backlog(wish), _busy(wish)],
        },
    }


def _behavior() -> Document:
    why = (
        "The second trigger keeps what works, so that the usual 300 s would only pay for idle cards"
    )
    return {"scaleDown": Reasoned({"stabilizationWindowSeconds": _STEADY_SECONDS}, why)}


def _backlog(wish: Wish) -> Reasoned:
    why = "Seconds of work that waits, by replica: wakes from zero, and cures a backlog."
    trigger = _from_broker(wish) if wish.queue.kind == "rabbitmq" else _from_prometheus(wish)
    return Reasoned(trigger, why)


def _from_broker(wish: Wish) -> Document:
    seconds = wish.message or wish.guess
    return {
        "type": "rabbitmq",
        "name": "backlog",
        "metricType": Reasoned("AverageValue", "Value would count replicas twice"),
        "metadata": {
            "queueName": wish.queue.name,
            "protocol": Reasoned(
                "amqp",
                "counts what waits, and nothing that is being worked on, at once; over http KEDA "
                'needs excludeUnacknowledged: "true", and hears of it seconds later',
            ),
            "mode": "QueueLength",
            "value": Reasoned(
                number(wish.target / seconds),
                f"{wish.target:g} s of messages of {seconds:g} s",
            ),
        },
        "authenticationRef": {"name": f"{wish.name}-queue"},
    }


def _from_prometheus(wish: Wish) -> Document:
    if wish.message is None:
        why = (
            "Messages that wait, times the seconds that one takes of a replica: measured, and "
            f"{wish.guess:g} s while none was done for {_RATE}."
        )
    else:
        why = f"Messages that wait, times the {wish.message:g} s that one takes of a replica."
    return {
        "type": "prometheus",
        "name": "backlog",
        "metricType": Reasoned("AverageValue", "Value would count replicas twice"),
        "metadata": {
            "serverAddress": wish.queue.prometheus,
            "query": Reasoned(query(wish), why),
            "threshold": number(wish.target),
            "ignoreNullValues": Reasoned("false", "nothing heard is no empty queue"),
        },
    }


def query(wish: Wish) -> str:
    """
    Return seconds of work that waits, as Prometheus computes them.

    What was done is filtered for being more than nothing: KEDA takes 0/0 for 0.
    """
    of_queue = f'queue="{wish.queue.name}"'
    waiting = wish.queue.waiting or f"sum(rabbitmq_queue_messages_ready{{{of_queue}}})"
    if wish.message is not None:
        return f"{waiting} * {wish.message:g}"
    done = (
        wish.queue.done
        or f"sum(rate(rabbitmq_channel_messages_acked_total{{{of_queue}}}[{_RATE}]))"
    )
    busy = (
        f'sum(rate(gpufence_pod_gpu_busy_seconds_total{{namespace="{wish.namespace}",'
        f'pod=~"{wish.name}-.*"}}[{_RATE}]))'
    )
    least = f"{_LEAST_SECONDS_PER_MESSAGE:g}"
    return (
        f"{waiting} * scalar(clamp_min({busy} / ({done} > 0), {least}) or vector({wish.guess:g}))"
    )


def _busy(wish: Wish) -> Reasoned:
    path = f"/v1/activity/{wish.namespace}/{wish.kind.plural}/{wish.name}"
    metadata: Document = {
        "url": f"{wish.activity}{path}",
        "valueLocation": "busyReplicas",
        "targetValue": Reasoned(number(UTILIZATION), "of its time a replica should be at work"),
        "activationTargetValue": Reasoned("0.01", "any work keeps it from zero"),
    }
    trigger: Document = {
        "type": "metrics-api",
        "name": "busy",
        "metricType": Reasoned("AverageValue", "Value would count replicas twice"),
        "metadata": metadata,
    }
    if wish.asks_token:
        metadata["authMode"] = "bearer"
        trigger["authenticationRef"] = {"name": ACCOUNT}
    return Reasoned(
        trigger,
        "Replicas at work, as the agents measure it: the load itself, without which a pool that "
        "keeps up looks as if it were not needed. While this fails nothing is scaled down, and the "
        "other trigger still wakes: hence no fallback and no scalingModifiers.",
    )


def number(value: float) -> str:
    """Write a number as KEDA reads it, of at least a thousandth."""
    return f"{max(value, 0.001):.3f}".rstrip("0").rstrip(".")
