"""
The policy, row by row, each with the seconds at which its test expects somebody to go.

A test is written beside others of its subject, in the module named, or below. Where nobody ever
goes, the test looks for longer than anything would take. Second 0 is the first sample over the
limit, the hold 30 s, the grace 120 s; who goes at 31 has a process that one list alone had shown.

    row                                           seconds    test
    warm-up spike inside the grace                never      test_time.test_warm_up_spike_inside_the_grace
    over from its start                           150        test_time.test_over_from_its_start
    sawtooth                                      114        test_time.test_sawtooth
    9 s over, 1 s under                           35         test_time.test_sawtooth
    two offenders                                 30, 31     test_brakes.test_two_offenders
    offender terminating with a grace of 10^9 s   30         test_brakes.test_offender_that_its_owner_deleted_with_an_endless_grace
      with last-resort-kill                       45, 50     test_brakes.test_last_resort_kill
    budget refusing (429), room on the card       30, 35     test_brakes.test_budget_refuses_on_a_card_with_room
      card short: then deleted                    18, 19     test_brakes.test_budget_refuses_on_a_short_card
      card short, budgets respected               18, 38     test_brakes.test_budget_is_respected_where_the_operator_says_so
    two budgets (500), card short                 18, 19     test_two_budgets_that_refuse_with_an_error_of_the_server
      any other failure                           18, 38     test_brakes.test_failed_eviction_is_never_forced
    uid changed under the same name               170        test_time.test_uid_changed_under_the_same_name
      between the verdict and the act             30, 181    test_another_pod_under_the_name_when_the_eviction_arrives
    pod gone                                      30         test_brakes.test_pod_gone
    Job pod                                       30         test_kinds.test_job_pod
    mirror pod                                    never      test_kinds.test_who_stays
    priority system-node-critical                 30         test_pods.test_priority_system_node_critical
    uninjected, room on the card                  never      test_kinds.test_who_stays
      card short                                  3          test_kinds.test_uninjected_on_a_short_card
    undeclared                                    never      test_kinds.test_who_stays
    several containers, over together             30         test_kinds.test_containers_add_up
      one over its part                           never      test_kinds.test_container_over_its_part_in_a_pod_within_its_limit
    several cards, within on each                 never      test_kinds.test_several_cards
      over on two                                 30         test_kinds.test_over_on_two_cards
    shared PID on two cards, within on each       never      test_kinds.test_shared_pid_on_two_cards
      over on one                                 30         test_shared_pid_over_on_one_of_its_two_cards
    GPU process of no pod                         30         test_kinds.test_gpu_process_of_no_pod
    process of a pod of another namespace mode    30         test_neighbour_of_another_mode_holding_more
      as the neighbour who is hurt                3          test_kinds.test_pod_of_a_namespace_without_a_mode
    agent just started                            63, 150    test_time.test_agent_just_started
    agent restarted in the middle of a violation  170        test_time.test_agent_restarted_in_the_middle_of_a_violation
    half the node violating                       30         test_brakes.test_fewer_violators_suspend_nothing
      more than half                              never      test_brakes.test_half_the_node_violating
    mode raised while over                        250        test_time.test_mode_raised_while_over
    namespace's memory lowered under running pods never      test_namespace_default_lowered_under_a_running_pod
      its max-memory lowered                      80         test_namespace_ceiling_lowered_under_a_running_pod
    one tenant alone on a full card               never      test_kinds.test_who_stays
    node's cap, namespace's cap                   90         test_brakes.test_cap_of_the_node
    API server out of reach                       70         test_brakes.test_api_server_out_of_reach
"""  # noqa: E501 - a table, one row a line

import importlib
import inspect
import re
from typing import Any, NamedTuple

import pytest

from agent.cluster.acts import read_refusal
from agent.fence import PodContext
from agent.model.decision import Answer, Outcome
from agent.model.pod import PodOnNode
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from kube import ServerError
from kube.errors import Failure
from tests.support.agent.builders import CARDS, container_id, pod
from tests.support.agent.world import Act
from tests.support.builders import pod as raw_pod
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, WITHIN, full, violating

_ROW = re.compile(r"^    (\S.*?|  \S.*?)\s+(never|[\d, ]*\d)\s+([\w.]+)$", re.MULTILINE)
_PLACES = {"": __name__, "test_pods": "tests.unit.agent.test_pods"}


class Row(NamedTuple):
    """One row of the table above."""

    what: str
    seconds: str
    test: str

    @property
    def source(self) -> str:
        module, _, name = self.test.rpartition(".")
        place = _PLACES.get(module, f"tests.unit.agent.judge.{module}")
        return inspect.getsource(getattr(importlib.import_module(place), name))


ROWS = [Row(*found) for found in _ROW.findall(__doc__ or "")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what.strip())
def test_row_names_a_test_with_these_seconds(row: Row) -> None:
    """Each row of the table names a test that expects these very seconds."""
    assert "def test_" in row.source
    if row.seconds == "never":
        assert "[]" in row.source
    else:
        numbers = set(re.findall(r"\d+", row.source))

        assert set(row.seconds.split(", ")) <= numbers


def test_table_is_read_to_its_last_row() -> None:
    """No line of the table escapes the test above."""
    lines = (__doc__ or "").partition("row  ")[2].splitlines()[1:]

    assert len(lines) == len(ROWS)


def read(annotations: dict[str, str], **namespace: str) -> PodOnNode:
    """
    Read pod `a` with these annotations as the API server sends it, in a namespace with these words.
    """
    raw: dict[str, Any] = raw_pod(annotations={names.INJECTED: "yes", **annotations})
    raw["metadata"] |= {"name": "a", "uid": "uid-a"}
    identity = f"containerd://{container_id('a')}"
    raw["status"] = {"containerStatuses": [{"name": "main", "containerID": identity}]}
    words = {names.PREFIX + key.replace("_", "-"): value for key, value in namespace.items()}
    ground = PodContext({names.MODE: "evict"}, words, Mode.EVICT, CARDS, Units())
    return read_pod_on_node(raw, ground)


def test_namespace_default_lowered_under_a_running_pod() -> None:
    """
    A namespace's memory counts when a pod is created: lowering it later changes no running pod.
    """
    own = {names.MEMORY: "3Gi"}
    world = violating(read(own, memory="3Gi"), used=2 * GIB)
    world.at(50, world.pods.update, a=read(own, memory="1Gi"))

    assert [] == world.run(300)
    assert Outcome.WITHIN is world.outcome("a")


def test_namespace_ceiling_lowered_under_a_running_pod() -> None:
    """
    A ceiling that falls below what a pod holds starts the time from zero: the hold later it goes.
    """
    own = {names.MEMORY: "3Gi"}
    world = violating(read(own, max_memory="3Gi"), used=2 * GIB)
    world.at(50, world.pods.update, a=read(own, max_memory="1Gi"))

    assert [Act(80, "a")] == world.run(300)


def test_shared_pid_over_on_one_of_its_two_cards() -> None:
    """
    A process on two cards makes its pod go for the card where that is over its limit, and once.
    """
    world = violating(used=WITHIN)
    world.hold("a", OVER, card=1)

    assert [Act(30, "a")] == world.run(300)


@pytest.mark.parametrize("mode", [None, Mode.OBSERVE, Mode.CAP])
def test_neighbour_of_another_mode_holding_more(mode: Mode | None) -> None:
    """A worse offender whose namespace does not evict neither goes nor keeps another from going."""
    world = violating(pod("a"), pod("other", namespace="team-b", mode=mode))
    world.hold("other", OVER + GIB)

    assert [Act(30, "a")] == world.run(300)


def test_two_budgets_that_refuse_with_an_error_of_the_server() -> None:
    """Two budgets for one pod are a refusal like any budget's, and overridden on a short card."""
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
    failure = Failure("POST eviction", 500, "InternalError", message)
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.answer = read_refusal(ServerError(failure)).answer

    expected = [Act(3, "a"), Act(8, "a"), Act(18, "a"), Act(19, "a", "delete")]
    assert expected == world.run(30)


def test_another_pod_under_the_name_when_the_eviction_arrives() -> None:
    """
    Where the API server finds another uid nothing is held against the pod that has the name now.
    """
    world = violating()
    world.answer = Answer.REPLACED
    world.at(31, world.change, "a", uid="uid-next")
    world.at(31, world.restart, "a")
    world.at(31, world.hold, "a", WITHIN)
    world.at(120, world.hold, "a", OVER)

    # The next one is counted from its own first sample on: grace until 151, over since 120.
    assert [Act(30, "a"), Act(181, "a")] == world.run(182)
    assert {} == world.memory.offences
