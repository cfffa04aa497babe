"""Findings for people and for programs."""

import json

from agent.commands.check import can_enforce, json_of, text_of
from gpufence.findings import look, ok, wrong

FINE = ok("NVML", "driver 580")
SHADY = look("identity", "its own account", "upgrade")
GONE = wrong("Node", "there is none", "set GPUFENCE_NODE")


def test_warnings_do_not_stand_in_the_way() -> None:
    """Only what is missing makes a node unenforceable."""
    assert can_enforce([FINE, SHADY])
    assert not can_enforce([FINE, GONE])


def test_people_get_a_table_remedies_and_an_answer() -> None:
    """The table comes first, the answer last."""
    expected = """\
CHECK      STATE     FOUND
NVML       ok        driver 580
identity   warning   its own account
Node       missing   there is none

identity: upgrade
Node: set GPUFENCE_NODE

This node cannot be enforced.
"""
    assert expected == text_of([FINE, SHADY, GONE])


def test_a_node_without_a_flaw_needs_no_remedy() -> None:
    """Where all is well there is the table and the answer."""
    expected = "CHECK   STATE   FOUND\nNVML    ok      driver 580\n\nThis node can be enforced.\n"
    assert expected == text_of([FINE])


def test_programs_get_all_of_it() -> None:
    """JSON has a version, the answer, and each check."""
    said = json.loads(json_of([FINE, GONE]))

    assert (1, False) == (said["v"], said["enforceable"])
    assert {
        "subject": "Node",
        "state": "missing",
        "text": "there is none",
        "remedy": "set GPUFENCE_NODE",
    } == said["checks"][1]
