"""Clients of an MPS server: whose memory is theirs, and whether anybody goes for it."""

import pytest

from agent.attribute import attribute
from agent.judge.standing import account_of, can_go, standing
from agent.model.pod import PodLimit, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import Sample
from agent.model.use import MPS_SERVER, Occupant, PodOnCard
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import (
    CARDS,
    LIMIT,
    card_sample,
    container_id,
    occupant,
    pod,
    process_of,
    uses,
)

UUID = CARDS[0].uuid
A = pod("a")
POLICY = EvictionPolicy()
MARGIN = max(POLICY.evict_margin_bytes, LIMIT * POLICY.evict_margin_percent // 100)
SHORT = POLICY.short_margin_bytes
SERVER = MPS_SERVER
B = pod("b", namespace="team-b")
EXEMPT = pod("mps-daemon", limit=None, mode=None, exempt="namespace kube-system is exempt")

MOUNTING = pod("device-plugin", limit=None, mode=None, of_operator=True)


def mps_uses(people: list[Occupant], *clients: int, held: int = 4 * GIB) -> dict[str, PodOnCard]:
    """Attribute one list of processes that hold so much each, of which some are clients of MPS."""
    sample = card_sample(0, {item.pid: held for item in people}, mps=clients)
    return dict(uses([sample], people, [A, B, EXEMPT, MOUNTING]).cards[UUID].pods)


@pytest.mark.parametrize(
    "server",
    [
        occupant(9, None, None, command=SERVER),
        occupant(9, None, None, command="renamed"),  # NVML lists it
        process_of(EXEMPT, 9, command=SERVER),
        process_of(MOUNTING, 9, command=SERVER),
    ],
)
def test_clients_of_the_nodes_mps_server_are_uncertain(server: Occupant) -> None:
    """A client of a server that is the operator's is marked, its neighbour without MPS is not."""
    people = [process_of(A, 1), process_of(B, 2), server]
    pods = mps_uses(people, 1, 9)

    assert (True, False) == (pods[A.uid].mps, pods[B.uid].mps)
    assert [4 * GIB, 4 * GIB] == [pods[item.uid].counted_bytes for item in (A, B)]


@pytest.mark.parametrize(
    "server",
    [
        process_of(A, 9, command=SERVER),  # in the client's own pod, or merely called so
        process_of(B, 9, command=SERVER),  # in another tenant's
        occupant(9, "uid-unknown", container_id("a"), command=SERVER),  # a pod of tomorrow
        occupant(9, A.uid, container_id("a", "sandbox"), command=SERVER),
        occupant(9, None, None, command="nvidia-smi"),  # no server at all
    ],
)
def test_a_tenant_makes_nobody_uncertain(server: Occupant) -> None:
    """A server that is not the operator's leaves every pod with what its processes hold."""
    pods = mps_uses([process_of(A, 1), process_of(B, 2), server], 1, 2)

    assert [False, False] == [pods[item.uid].mps for item in (A, B)]


def test_a_server_is_its_pods_like_its_clients() -> None:
    """Server and clients of one pod add up, beside whatever server the node has."""
    people = [process_of(A, 1), process_of(A, 2, command=SERVER)]
    pods = mps_uses([*people, occupant(9, None, None, command=SERVER)], 1)

    assert (8 * GIB, False) == (pods[A.uid].counted_bytes, pods[A.uid].mps)


def stands(own: int, client: int, free: int | None = None) -> PodOnCard:
    """Judge a pod of which a client of the node's server holds so much, and another process."""
    people = [process_of(A, 1), process_of(A, 2), process_of(B, 3)]
    people.append(occupant(9, None, None, command=SERVER))
    sample = card_sample(0, {1: own, 2: client, 3: MIB, 9: 0}, mps=[2], free=free)
    card = uses([sample], people, [A, B]).cards[UUID]
    return standing(card.pods[A.uid], account_of(card, pods_on_node([A, B]), POLICY), POLICY)


@pytest.mark.parametrize("client", [0, MIB, 8 * GIB])
def test_a_client_does_not_excuse_the_rest_of_its_pod(client: int) -> None:
    """What a pod's other processes hold past the margin is held against it, and nothing else."""
    use = stands(LIMIT + MARGIN + 1, client)

    assert (False, True, MARGIN + 1) == (use.mps, use.evict_over, use.excess_bytes)


@pytest.mark.parametrize("own", [0, LIMIT, LIMIT + 1, LIMIT + MARGIN])
def test_a_client_pushes_no_pod_past_the_margin(own: int) -> None:
    """A pod whose other processes are within the margin is reported for its client, no more."""
    use = stands(own, 8 * GIB)

    assert (True, True, True) == (use.mps, use.report_over, use.evict_over)
    assert not can_go(use)


@pytest.mark.parametrize(("own", "goes"), [(LIMIT + SHORT, False), (LIMIT + SHORT + 1, True)])
def test_a_client_pushes_no_pod_past_the_margin_of_a_shortage(own: int, *, goes: bool) -> None:
    """On a short card the lower margin is that of the other processes alone, too."""
    use = stands(own, 8 * GIB, free=0)

    assert (goes, True) == (can_go(use), use.short_over)


def test_a_client_takes_nothing_from_those_it_shares_a_claim_with() -> None:
    """Of a shared limit a pod has left what the others hold without their clients."""
    limit = {UUID: PodLimit(4 * GIB, share_bytes=GIB, group="claim")}
    one, other = pod("a", limits=limit), pod("b", limits=limit)
    people = [process_of(one, 1), process_of(other, 2), occupant(9, None, None, command=SERVER)]
    sample = card_sample(0, {1: 3 * GIB, 2: 2 * GIB, 9: 0}, mps=[1])
    pods = uses([sample], people, [one, other]).cards[UUID].pods

    assert [2 * GIB, 4 * GIB] == [pods[item.uid].limit_bytes for item in (one, other)]


def test_a_process_nobody_could_look_up_is_no_server() -> None:
    """A client that has ended by the time of the look makes no other one uncertain."""
    sample = card_sample(0, {1: GIB, 9: GIB}, mps=[1, 9])

    assert not uses([sample], [process_of(A)], [A]).cards[UUID].pods[A.uid].mps


def test_a_server_that_ends_makes_its_clients_certain() -> None:
    """Who is a client is decided anew with each list, and with each change of the pods."""
    people = [process_of(A), occupant(9, None, None, command=SERVER)]
    sample = card_sample(0, {1: GIB, 9: 0}, mps=[1])
    first = uses([sample], people, [])
    second = uses([sample], [], [A], first)
    third = uses([card_sample(0, {1: GIB}, mps=[1], at=1)], people, [A], second)
    last = uses([card_sample(0, {1: GIB}, at=2)], people, [A], second)
    looks = [look.cards[UUID].pods[A.uid].mps for look in (second, third, last)]

    assert [True, False, False] == looks


def test_mps_is_charged_where_the_operator_says_so() -> None:
    """Clients of the node's MPS server are charged like everybody with `GPUFENCE_MPS=evict`."""
    sample = Sample(0.0, (card_sample(0, {1: 4 * GIB, 9: GIB}, mps=[1]),))
    known = {1: process_of(A, 1), 9: occupant(9, None, None, command=SERVER)}
    seen = [
        attribute(sample, known, pods_on_node([A]), charge_mps=charged).cards[UUID].pods[A.uid]
        for charged in (False, True)
    ]

    assert [True, False] == [item.mps for item in seen]
