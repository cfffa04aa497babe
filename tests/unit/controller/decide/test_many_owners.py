"""Ten thousand owners, all of which have been idle for long."""

from controller.decide import decide
from controller.model import OwnerState, ReleaseMemory
from controller.rules import ReleaseRules
from tests.support.counting import calls
from tests.support.release import cluster, idle_pod, owner_state, pod_state

RULES = ReleaseRules()


def owners(number: int, *, idle: int) -> list[OwnerState]:
    return [
        owner_state(
            idle_pod(f"w{at}-0", minutes=600) if at < idle else pod_state(f"w{at}-0", idle="False"),
            name=f"w{at}",
        )
        for at in range(number)
    ]


def test_each_of_ten_thousand_owners_has_its_standing() -> None:
    """Every owner is judged in one pass, and no busy one is touched."""
    decision = decide(cluster(*owners(10_000, idle=10)), ReleaseMemory(), RULES)

    assert 10_000 == len(decision.standings)
    assert {f"w{at}" for at in range(10)} >= {act.key.name for act in decision.acts}
    assert decision.acts


def test_a_pass_grows_with_its_owners_alone() -> None:
    """Ten times the owners, all of them idle, take ten times the calls and hardly more."""
    few, many = (cluster(*owners(number, idle=number)) for number in (1_000, 10_000))
    once = calls(lambda: decide(few, ReleaseMemory(), RULES))

    assert calls(lambda: decide(many, ReleaseMemory(), RULES)) < 11 * once
