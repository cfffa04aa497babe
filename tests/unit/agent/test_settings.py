"""What an operator can set: every variable does something, and every mistake is told."""

from dataclasses import fields
from pathlib import Path

import pytest

from agent.events.episodes import Damping
from agent.model.policy import Budgets, EvictionPolicy, EvictWhen
from agent.settings import AgentSettings, read_agent_settings
from gpufence.errors import SettingsError
from gpufence.quantity import GIB, MIB
from gpufence.setting_kinds import Row
from gpufence.settings import rows, shown_settings


def read(**variables: str) -> AgentSettings:
    return read_agent_settings(variables)


def problems(variables: dict[str, str], *, needs_node: bool = False) -> str:
    with pytest.raises(SettingsError) as caught:
        read_agent_settings(variables, needs_node=needs_node)
    return str(caught.value)


def test_nothing_set_means_the_defaults() -> None:
    """An empty environment gives what the values say by themselves."""
    assert AgentSettings() == read()


def test_every_number_of_the_policy_can_be_set() -> None:
    """No field of the policy, and none of the damping, is out of an operator's reach."""
    assert len(fields(EvictionPolicy)) == len(rows(EvictionPolicy))
    assert len(fields(Damping)) == len(rows(Damping))


@pytest.mark.parametrize("row", rows(AgentSettings), ids=lambda row: row.variable)
def test_each_variable_takes_its_own_default(row: Row) -> None:
    """The default in the help, written into the variable, changes nothing."""
    if not row.unset:
        assert AgentSettings() == read(**{row.variable: row.default_text})


def test_values_of_every_kind_are_read() -> None:
    """Durations, amounts, counts, choices, flags, ladders and paths arrive as what they are."""
    settings = read(
        GPUFENCE_HOLD_SECONDS="2.5",
        GPUFENCE_EVICT_MARGIN="1Gi",
        GPUFENCE_NODE_EVICTIONS_PER_MINUTE="9",
        GPUFENCE_EVICT_WHEN="short",
        GPUFENCE_BUDGETS="respect",
        GPUFENCE_LAST_RESORT_KILL="true",
        GPUFENCE_REPEATED_HOLD_SECONDS="1,2.5",
        GPUFENCE_NVML_LIBRARY="/x/libnvidia-ml.so.1",
        GPUFENCE_INTERVAL_SECONDS="0.5",
        GPUFENCE_EVENT_BURST="3",
        GPUFENCE_EXEMPT_NAMESPACES="a, b",
        GPUFENCE_GPUSHARE_UNIT="MiB",
        GPUFENCE_STATUS_LISTEN="[::1]:99",
    )
    policy = settings.policy

    assert (2.5, GIB, 9) == (
        policy.hold_seconds,
        policy.evict_margin_bytes,
        policy.node_evictions_per_minute,
    )
    assert (EvictWhen.SHORT, Budgets.RESPECT) == (policy.evict_when, policy.budgets)
    assert policy.last_resort_kill
    assert (1.0, 2.5) == policy.repeated_hold_seconds
    assert Path("/x/libnvidia-ml.so.1") == settings.sampler.library_path
    assert 0.5 == settings.sampler.interval_seconds
    assert 3 == settings.damping.burst
    assert {"a", "b"} == settings.exempt_namespaces
    assert MIB == settings.units.default.gpushare_bytes
    assert "[::1]:99" == shown_settings(settings)["status_listen"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GPUFENCE_HOLD_SECONDS", "soon"),
        ("GPUFENCE_INTERVAL_SECONDS", "0"),
        ("GPUFENCE_EVICT_MARGIN", "lots"),
        ("GPUFENCE_EVICT_MARGIN_PERCENT", "101"),
        ("GPUFENCE_EVICT_WHEN", "never"),
        ("GPUFENCE_LAST_RESORT_KILL", "maybe"),
        ("GPUFENCE_REPEATED_HOLD_SECONDS", "60,soon"),
        ("GPUFENCE_REPEATED_HOLD_SECONDS", "1,2,3,4,5,6,7,8,9,10,11"),
        ("GPUFENCE_REPEATED_HOLD_SECONDS", "-1"),
        ("GPUFENCE_STATUS_LISTEN", "here"),
        ("GPUFENCE_IMPERSONATION", "perhaps"),
    ],
)
def test_a_mistake_names_its_variable(variable: str, value: str) -> None:
    """What cannot be read is refused with the variable, the value and what would do."""
    said = problems({variable: value})

    assert said.startswith(f'{variable}: "{value}"')


def test_the_node_is_required_where_it_matters() -> None:
    """Without a node's name, or with one that cannot be, `run` and `check` do not begin."""
    assert problems({}, needs_node=True).startswith('GPUFENCE_NODE: ""')
    assert problems({"GPUFENCE_NODE": "a/b"}, needs_node=True).startswith('GPUFENCE_NODE: "a/b"')


def test_a_named_node_is_taken() -> None:
    """The node's name arrives as it was written."""
    assert "gpu-1" == read_agent_settings({"GPUFENCE_NODE": "gpu-1"}, needs_node=True).node
