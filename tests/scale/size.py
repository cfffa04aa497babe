"""
How large the cluster is, and what everything in it is called: all of it follows from numbers, so
that programs that know the size agree without a word.

Names of one kind are equally long: objects are made by putting other numbers into one of them.
"""

from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_URL, uuid5

CARDS: Final = 8
TEAMS: Final = 100
CHURN: Final = "team-churn"
MOST_NODES: Final = 80_000
MOST_PODS: Final = 600_000
_PODS_OF_OWNER: Final = 10
_HASH: Final = "7c8f9b6d5"


@dataclass(frozen=True)
class Size:
    """`silent` agents do not answer, `agents` real ones run, `rate` pods a second come and go."""

    nodes: int = 5000
    pods: int = 50_000
    silent: int = 20
    agents: int = 200
    rate: int = 50

    @property
    def text(self) -> str:
        return f"{self.nodes:,} / {self.pods:,}"

    @property
    def owners(self) -> int:
        return -(-self.pods // _PODS_OF_OWNER)

    def pods_of_node(self, node: int) -> range:
        return range(node, self.pods, self.nodes)

    def is_silent(self, node: int) -> bool:
        """Return whether a node's agent answers nothing; such nodes are spread evenly."""
        return node * self.silent // self.nodes != (node + 1) * self.silent // self.nodes


def uid(kind: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind}/{number}"))


def node_name(number: int) -> str:
    return f"gpu-node-{number:05}.region-1.compute.internal"


def agent_name(number: int) -> str:
    return f"gpufence-agent-{number:05}"


def card_uuid(node: int, index: int) -> str:
    return f"GPU-{node:05}a5c-41d3-4e8b-9b1f-0d6a54c3e2f{index}"


def team_of(owner: int) -> str:
    return f"team-{owner % TEAMS:02}"


def owner_of(pod: int) -> int:
    return pod // _PODS_OF_OWNER


def deployment_name(owner: int) -> str:
    return f"model-{owner:05}"


def replica_set_name(owner: int) -> str:
    return f"{deployment_name(owner)}-{_HASH}"


def pod_name(pod: int, owner: int) -> str:
    return f"{replica_set_name(owner)}-x{pod:06}"
