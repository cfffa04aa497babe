"""
PURE. The variables by which frameworks can be told how much memory they may use.

One row for each; what every one of them does, and how it misbehaves, is in docs/frameworks.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufence import names
from gpufence.plan import Form
from webhook.frameworks.figures import Basis


@dataclass(frozen=True, slots=True)
class Row:
    """
    One variable: how its value is written, what it is reckoned from, or its one `fixed` value.

    `yields` marks a fixed value that gives way to whatever the user wrote.
    """

    env: str
    form: Form
    basis: Basis = Basis.PLAIN
    fixed: str = ""
    yields: bool = False


PYTORCH = Row(names.PYTORCH_CONF, Form.PYTORCH)
XLA = Row(names.XLA_FRACTION, Form.FRACTION)
XLA_NEW = Row(names.XLA_NEW_FRACTION, Form.FRACTION)
XLA_BLANK = Row(names.XLA_FRACTION, Form.FIXED)  # both names non-empty: JAX falls back to the CPU
XLA_NEW_BLANK = Row(names.XLA_NEW_FRACTION, Form.FIXED)
OWN_FRACTION = Row(names.ENV_FRACTION, Form.FRACTION)

TABLE = (
    PYTORCH,
    XLA,
    XLA_NEW_BLANK,
    Row(names.TF_GROWTH, Form.FIXED, fixed="true"),
    Row(names.CUPY_LIMIT, Form.BYTES),
    Row(names.PADDLE_LIMIT, Form.MEBIBYTES),
    Row(names.JULIA_LIMIT, Form.JULIA),
    Row(names.CUDA_LOADING, Form.FIXED, fixed="LAZY", yields=True),
    Row(names.ENV_LIMIT_BYTES, Form.BYTES),
    OWN_FRACTION,
    Row(names.ENV_TF_FRACTION, Form.FRACTION, Basis.TENSORFLOW),
)

GROWTH = (
    Row(names.XLA_PREALLOCATE, Form.FIXED, fixed="false"),
    Row(names.TF_GROWTH, Form.FIXED, fixed="true"),
)
"""What makes frameworks take memory only as they need it; the others do so by themselves."""

FRACTIONS = frozenset({Form.FRACTION, Form.PYTORCH, Form.SHARE})
"""Forms that depend on the card's size; the others depend on the limit and the context only."""
