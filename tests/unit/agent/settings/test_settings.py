"""
What an operator can set: every variable does something, and every mistake is told.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from agent.events import Damping
from agent.model.policy import Budgets, EvictWhen, Policy
from agent.numbers import DAMPING, POLICY, SAMPLER, Row, shown
from agent.nvml.settings import SamplerSettings
from agent.reader import Reader
from agent.settings import (
    DAMPING_HELP,
    HELP,
    POLICY_HELP,
    SAMPLER_HELP,
    AgentSettings,
    read_agent_settings,
)
from gpufence.errors import SettingsError
from gpufence.quantity import GIB, MIB
from tests.support.sources import ROOT

ROWS = (*POLICY, *DAMPING, *SAMPLER)
ALL_HELP = HELP | POLICY_HELP | DAMPING_HELP | SAMPLER_HELP


def read(**variables: str) -> AgentSettings:
    reader = Reader(variables)
    settings = read_agent_settings(reader)
    reader.check()
    return settings


def problems(variables: dict[str, str], *, needs_node: bool = False) -> str:
    reader = Reader(variables)
    read_agent_settings(reader, needs_node=needs_node)
    with pytest.raises(SettingsError) as caught:
        reader.check()
    return str(caught.value)


def test_nothing_set_means_the_defaults() -> None:
    """
    An empty environment gives what the values say by themselves.
    """
    assert AgentSettings() == read()


def test_every_number_of_the_policy_can_be_set() -> None:
    """
    No field of the policy, and none of the damping, is out of an operator's reach.
    """
    assert {field.name for field in fields(Policy)} == {row.field for row in POLICY}
    assert {field.name for field in fields(Damping)} == {row.field for row in DAMPING}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.variable)
def test_each_variable_takes_its_own_default(row: Row) -> None:
    """
    The default in the help, written into the variable, changes nothing.
    """
    default = next(
        getattr(value, row.field)
        for value in (Policy(), Damping(), SamplerSettings())
        if hasattr(value, row.field)
    )
    if default is not None:
        assert AgentSettings() == read(**{row.variable: shown(row, default)})


def test_values_of_every_kind_are_read() -> None:
    """
    Durations, amounts, counts, choices, flags, ladders and paths arrive as what they are.
    """
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
    assert MIB == settings.units.gpushare_bytes
    assert "[::1]:99" == settings.shown()["status_listen"]


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
    """
    What cannot be read is refused with the variable, the value and what would do.
    """
    said = problems({variable: value})

    assert said.startswith(f'{variable}: "{value}"')


def test_the_node_is_required_where_it_matters() -> None:
    """
    Without a node's name, or with one that cannot be, `run` and `check` do not begin.
    """
    assert problems({}, needs_node=True).startswith('GPUFENCE_NODE: ""')
    assert problems({"GPUFENCE_NODE": "a/b"}, needs_node=True).startswith('GPUFENCE_NODE: "a/b"')


def test_every_setting_is_in_the_documentation() -> None:
    """
    The page of settings has a row for each variable, with the default the program has.
    """
    text = (ROOT / "docs" / "settings-agent.md").read_text(encoding="utf-8")
    row_of = r"^\| `(GPUFENCE_[A-Z_]+)` \| (?:`([^`]*)`|[^|]*) \|"
    rows = dict(re.findall(row_of, text, re.MULTILINE))

    assert set(ALL_HELP) == set(rows)
    for row in ROWS:
        if rows[row.variable]:
            assert ALL_HELP[row.variable].endswith(f"({rows[row.variable]})"), row.variable


def test_a_named_node_is_taken() -> None:
    """
    The node's name arrives as it was written.
    """
    reader = Reader({"GPUFENCE_NODE": "gpu-1"})

    assert "gpu-1" == read_agent_settings(reader, needs_node=True).node
