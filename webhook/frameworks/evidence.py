"""
PURE. What the texts of a container betray: that a known program may run there, or one that plans
the card's memory by itself, and where that is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.frameworks.budget import Budget


def by_first(*patterns: str) -> re.Pattern[str]:
    """Find any of some patterns, each of which begins with a letter of its own: fast that way."""
    rests: dict[str, list[str]] = {}
    for pattern in patterns:
        rests.setdefault(pattern[0], []).append(pattern[1:])
    return re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in rests.items()))


def alone(*words: str) -> tuple[str, ...]:
    """Return patterns of words that are part of no longer one."""
    return tuple(f"{word}(?<![a-z]{word})(?![a-z])" for word in words)


_HINTS = (
    *("vllm", "aphrodite", "sglang", "tgi", "text[.-]generation", "text-embeddings", "tensorrt"),
    *("trt-?llm", "triton", "tensorflow_model", "serving", "nim/", "llama", "local-?ai", "tabby"),
    *("lorax", "fastdeploy", "djl", "service ssh", "start ssh", "init\\.d/ssh"),
    *("lmdeploy", "comfy", "dask", "spark", "xinference", "ray(?![a-z])", "tei(?![a-z])", "sshd"),
    *("huggingfaceserver", "inference_api", "gpu[-_]memory[-_]", "mem[-_]fraction"),
    *("cuda[-_]memory", "cache[-_]max[-_]entry", "--rmm", "reserve[-_]vram", "run_cluster"),
    r"entrypoint\.sh (?:driver|executor)",
)
HINT = by_first(*_HINTS)
"""What any program that is known betrays itself by, so that most containers need no closer look."""

_PLANNERS = (
    *("vllm", "sglang", "lmdeploy", "lightllm", "trt-?llm", "tensorrt[-_ ]?llm", "turbomind"),
    *("openrlhf", "nemo[-_]?rl", "openllm", "fast_?deploy", "xinference", "huggingfaceserver"),
    *("aphrodite", "ktransformers", "gpustack", "rtp[-_]llm", "ray-?llm", "deepspeed[-_]mii"),
    *(
        "mlc[-_]llm",
        "lorax",
        r"ray[\"')}]* start(?![a-z])",
        "text[-_.]generation[-_.](?:inference|server|launcher)",
    ),
    *alone("verl", "djl", "lmi", "tgi", "nim", "mii", "llm-d", "areal"),
    *("max[-_]model[-_]len", "max[-_]num[-_](?:seqs|batched)", "served[-_]model[-_]name"),
    *("tensor[-_]parallel[-_]size", "enforce[-_]eager", "enable[-_]prefix[-_]cach"),
    *("chunked[-_]prefill", "kv[-_](?:transfer|cache[-_]dtype)", "tool[-_]call[-_]parser"),
    *("disaggregation[-_]mode", "pipeline[-_]parallel[-_]size"),
    *("rolling[-_]?batch", "gpu[-_]mem(?:ory)?[-_]util", "free[-_]gpu[-_]mem"),
    *("cache[-_]max[-_]entry", "mem[-_]frac(?<!client[-_]mem[-_]frac)", "cuda[-_]memory[-_]frac"),
)
PLANNER = by_first(*_PLANNERS)
"""What betrays a server that plans with the card, wherever it stands."""

BETRAYED = by_first(*_HINTS, *_PLANNERS)
"""Either, in all texts of a container at once: most need no closer look."""


_HOST = re.compile(r"(?:https?|grpcs?)://[^/\s\"']*")
_ELSEWHERE = re.compile(
    r"(?:https?|grpcs?)://(?!localhost\b|127\.|0\.0\.0\.0)\S+"
    r"|(?!localhost\b)[A-Za-z][A-Za-z0-9.-]*:[0-9]{2,5}(?:/\S*)?"
)
"""Where a server is that is none of the container's own: what has its address is its client."""


class Mention(NamedTuple):
    """The first word that names a server which plans the card's memory, and where it stands."""

    word: str
    where: str


def mention_of(
    image: str, line: str, name: str, said: Mapping[str, str | None], budget: Budget
) -> Mention | None:
    """Return the first word that names a planner, and where it stands."""
    texts = [("its image", image), ("its command", line), ("its name", name)]
    for env, text in said.items():
        if text is None or not _ELSEWHERE.fullmatch(text):
            texts.append((f"its variable {env}", f"{env}={text or ''}"))
    for where, text in texts:
        budget.read(len(text) + 32)
        found = PLANNER.search(text.lower())
        if found is not None and "://" in text:  # a client's address is no server
            budget.read(len(text))
            found = PLANNER.search(_HOST.sub(" ", text.lower()))
        if found is not None:
            return Mention(found[0], where)
    return None
