"""
The conditions in deploy/ that follow from the dialects: who calls the webhook, and what is frozen.
"""

import re
import textwrap
from collections.abc import Iterable

from gpufence import conditions
from tools import ROOT

_COLUMNS = 100
_BASE = ROOT / "deploy" / "base" / "webhook"
CONDITIONED = (_BASE / "webhook-configuration.yaml", _BASE / "policies.yaml")
_TEXTS = {
    "uses-gpu": conditions.uses_gpu(),
    "no-mirror": conditions.no_mirror(),
    "frozen": conditions.frozen(),
    "given": conditions.given(),
}
_EXPRESSION = re.compile(
    rf"(?P<head>( *)- name: (?P<name>{'|'.join(_TEXTS)})\n\2  expression: >-\n)(?:\2    .*\n)+"
)


def with_conditions(manifest: str) -> str:
    """Return the manifest with each of these expressions as the code has it now."""
    return _EXPRESSION.sub(
        lambda match: match["head"] + "".join(_lines(_TEXTS[match["name"]], match[2])), manifest
    )


def _lines(text: str, indent: str) -> Iterable[str]:
    inner = f"{indent}    "
    wrapped = textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=inner,
        subsequent_indent=inner,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (f"{line}\n" for line in wrapped)
