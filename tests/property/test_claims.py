"""Whatever claims give to whichever containers, nobody is told more than was consumed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.model.pod import PodLimit
from gpufence.annotations import NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.cards import Card
from gpufence.devices import Reading, on_card, with_devices, with_parts
from gpufence.dialects import Units
from gpufence.limits import Limits, read_limits
from gpufence.pods import Pod, phase_sums, read_pod
from gpufence.quantity import GIB, MIB
from tests.support import builders
from tests.support.agent.builders import CARDS as AGENT_CARDS
from tests.support.agent.builders import card_sample, process_of, uses
from tests.support.agent.builders import pod as agent_pod
from tests.support.builders import container, pod, sidecar

CARD_BYTES = 80 * GIB
CARDS = {
    f"gpu.nvidia.com/node-1/gpu-{place}": Card(f"GPU-{place}", place, "H100", CARD_BYTES)
    for place in range(3)
}
CLAIMS, REQUESTS = ("a", "b"), ("x", "y")
AGAIN = "again"  # how pods call the first of them a second time
_uses = st.dictionaries(st.sampled_from((*CLAIMS, AGAIN)), st.sampled_from(("", *REQUESTS)))
_results = st.lists(
    st.tuples(st.sampled_from(REQUESTS), st.integers(0, 2), st.integers(1, 40 * 1024)),
    min_size=1,
    max_size=4,
)
_users = st.integers(1, 4)


@st.composite
def claiming(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a pod with containers of every kind, and its claims."""
    kinds = {"regular": container, "side": sidecar, "init": container}
    made: dict[str, list[dict[str, Any]]] = {
        kind: [
            builders.claiming(make(f"{kind}-{place}"), **uses)
            for place, uses in enumerate(draw(st.lists(_uses, max_size=3)))
        ]
        for kind, make in kinds.items()
    }
    early = draw(st.permutations([*made["side"], *made["init"]]))
    refs = [builders.by_name(name, name) for name in CLAIMS]
    refs.append(builders.by_name(AGAIN, CLAIMS[0]))
    raw = pod(*made["regular"], init=early, resourceClaims=refs)
    found = {}
    for name in CLAIMS:
        given_to = [
            builders.result(f"gpu-{card}", f"{amount}Mi", request)
            for request, card, amount in draw(_results)
        ]
        users = tuple(f"uid-{place}" for place in range(1, draw(_users) + 1))
        found[name] = builders.allocated(builders.claim(name), *given_to, users=users)
    return raw, {**found, AGAIN: found[CLAIMS[0]]}


def consumed(item: dict[str, Any], device: str) -> int:
    """Add up what a claim has of a card, as its allocation says."""
    results = item["status"]["allocation"]["devices"]["results"]
    return sum(
        int(each["consumedCapacity"]["memory"].removesuffix("Mi")) * MIB
        for each in results
        if each["device"] == device
    )


def limits(pod: Pod) -> Limits | None:
    options = read_pod_options({}, frozenset())
    card = CandidateCard(Units(), CARD_BYTES)
    found = read_limits(pod, options, NamespaceOptions(), card)
    return found if isinstance(found, Limits) else None


@given(claiming())
def test_on_no_card_is_the_limit_more_than_was_consumed_there(
    drawn: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """The limit by which an agent evicts is at most what all claims have of that card."""
    raw, found = drawn
    read = with_devices(read_pod(raw), found, Reading("uid-1", bound=True, cards=CARDS))
    for card in CARDS.values():
        there = on_card(read, card.uuid)
        said = limits(there)
        if said is not None and there is not read:
            most = sum(consumed(found[name], f"gpu-{card.index}") for name in CLAIMS)

            assert said.limit_bytes is not None
            assert said.limit_bytes <= most


@given(claiming())
def test_frameworks_that_run_together_are_told_no_more_than_was_consumed(
    drawn: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """The parts of the containers of each phase, times the pods that use claims, stay within."""
    raw, found = drawn
    sharers = min(len(item["status"]["reservedFor"]) for item in found.values())
    read = with_parts(read_pod(raw), found, Reading("uid-1", bound=True, cards=CARDS))
    said = limits(read)
    if said is None:
        return
    used = {device.card.index for device in read.devices if device.card}
    cards = [sum(consumed(found[name], f"gpu-{card}") for name in CLAIMS) for card in sorted(used)]
    parts = {part.container: part.limit_bytes or 0 for part in said.parts}

    assert all(amount * sharers <= max(cards) for amount in parts.values())
    if len(cards) == 1:
        assert all(total * sharers <= cards[0] for total in phase_sums(read, parts))


_AMOUNTS = {"a": 8 * GIB, "b": 4 * GIB, "c": 2 * GIB}
_crowds = st.lists(
    st.tuples(
        st.sets(st.sampled_from(sorted(_AMOUNTS)), min_size=1),
        st.integers(0, 15 * GIB),
    ),
    min_size=1,
    max_size=4,
)


@given(_crowds)
def test_pods_that_keep_to_their_limits_hold_no_more_than_their_claims(
    crowd: list[tuple[set[str], int]],
) -> None:
    """
    However claims are shared, and whatever else each of the pods has: who is within the limit that
    the others leave it never takes more than all of them together were given.
    """
    pods = []
    for place, (used, _) in enumerate(crowd):
        made_of = tuple((name, _AMOUNTS[name]) for name in sorted(used))
        limit = PodLimit(sum(amount for _, amount in made_of), claims=made_of)
        pods.append(agent_pod(f"p{place}", limits={AGENT_CARDS[0].uuid: limit}))
    held = {place: amount for place, (_, amount) in enumerate(crowd, start=1)}
    people = [process_of(item, pid) for pid, item in enumerate(pods, start=1)]
    seen = uses([card_sample(0, dict(held))], people, pods).cards[AGENT_CARDS[0].uuid].pods
    within = all(
        use.used_bytes is not None
        and use.limit_bytes is not None
        and use.used_bytes <= use.limit_bytes
        for use in seen.values()
    )

    assert not within or sum(held.values()) <= sum(
        _AMOUNTS[name] for name in set().union(*(used for used, _ in crowd))
    )
