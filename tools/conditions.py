"""
The CEL text in deploy/ that follows from the dialects: which pods reach the webhook, and what is
frozen.

No dialect is known to the code and unknown to the manifests. A pod that no condition lets through
costs its creator nothing and us no request.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import ANNOTATION_KEYS, GPU_RESOURCES, PREFIXES
from tools import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLUMNS = 100
_BASE = ROOT / "deploy" / "base" / "webhook"
CONDITIONED = (_BASE / "webhook-configuration.yaml", _BASE / "policies.yaml")


def uses_gpu() -> str:
    """
    Match pods that declare GPU memory in any known way, that have resource claims, or that carry
    an annotation of ours.
    """
    resources = _among("k", GPU_RESOURCES)
    prefixes = " || ".join(f"k.startsWith('{prefix}')" for prefix in PREFIXES)
    keys = _among("k", ANNOTATION_KEYS)
    return (
        "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
        "c.?resources.?limits.orValue({}).exists(k, "
        f"{resources} || {prefixes})) || "
        "size(object.spec.?resourceClaims.orValue([])) > 0 || "
        "object.metadata.?annotations.orValue({}).exists(k, "
        f"{keys} || k.startsWith('{names.PREFIX}') || k.startsWith('{names.ENV_PREFIX}') || "
        f"{_of_containers(names.KAI_DRIVER)})"
    )


def no_mirror() -> str:
    """Match every pod but the mirrors of static pods, which the kubelet runs as it likes."""
    return f"!('{names.MIRROR}' in object.metadata.?annotations.orValue({{}}))"


def frozen() -> str:
    """
    List the annotations that were changed, of those that nobody may change once the pod exists.

    Whose a key is costs less to find out than what it says, so that is asked first.
    """
    ours = (
        f"(k.startsWith('{names.PREFIX}') || k.startsWith('{names.ENV_PREFIX}') || "
        f"{_among('k', ANNOTATION_KEYS)})"
    )
    return (
        f"variables.after.filter(k, {ours} && variables.before[?k] != variables.after[?k]) + "
        f"variables.before.filter(k, {ours} && !(k in variables.after))"
    )


def given() -> str:
    """
    List the annotations that were changed, of those that only who binds a pod may write, and before
    it has a node.
    """
    key = _of_containers((*names.KAI_DRIVER, names.KAI_GIVEN))
    return (
        f"variables.after.filter(k, {key} && variables.before[?k] != variables.after[?k]) + "
        f"variables.before.filter(k, {key} && !(k in variables.after))"
    )


def _of_containers(ends: Iterable[str]) -> str:
    """Match what is said of one container to those who let the driver hold it."""
    said = " || ".join([f"k.endsWith('{end}')" for end in ends])
    return f"(k.startsWith('{names.KAI_OF_CONTAINER}') && ({said}))"


def _among(variable: str, choices: Iterable[str]) -> str:
    quoted = ", ".join(f"'{choice}'" for choice in choices)
    return f"{variable} in [{quoted}]"


_TEXTS = {
    "uses-gpu": uses_gpu(),
    "no-mirror": no_mirror(),
    "frozen": frozen(),
    "given": given(),
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
