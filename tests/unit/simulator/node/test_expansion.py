"""
`$(NAME)` as Kubernetes expands it; the cases follow the behaviour of its own expansion.
"""

from __future__ import annotations

import pytest

from simulator.node.expansion import expand

VARIABLES = {"A": "one", "B": "$(A)", "EMPTY": "", "WITH-DASH": "dash"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("$(A)", "one"),
        ("x$(A)y$(A)z", "xoneyonez"),
        ("$(WITH-DASH)", "dash"),
        ("$(EMPTY)", ""),
        ("$(B)", "$(A)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$()", "$()"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$$", "$"),
        ("$", "$"),
        ("$A", "$A"),
        ("${A}", "${A}"),
        ("$(A", "$(A"),
        ("$($(A)", "$($(A)"),
        ("$(A)$(", "one$("),
        ("a$b$(A)", "a$bone"),
        ("(A)", "(A)"),
        ("$(A\nB)", "$(A\nB)"),
        ("\n$(A)\n", "\none\n"),
    ],
)
def test_references_are_replaced_as_in_kubernetes(text: str, expected: str) -> None:
    """
    Known references give way to their values, everything else stays as it was written.
    """
    assert expected == expand(text, VARIABLES)
