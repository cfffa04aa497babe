"""
PURE. `$(NAME)` in values, commands and arguments, as Kubernetes expands it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:(?P<escaped>\$)|\((?P<name>[^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """
    Replace the references to known variables; unknown ones stay as they are, `$$` is one `$`.

    What a variable holds is not expanded again, and a lone `$` or `$(` is ordinary text.
    """

    def replacement(found: re.Match[str]) -> str:
        return "$" if found["escaped"] else variables.get(found["name"], found[0])

    return _REFERENCE.sub(replacement, text)
