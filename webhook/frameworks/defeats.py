"""
PURE. Variables that take the effect from a cap, and the sentence that says so.
"""

from __future__ import annotations

from gpufence import names

_NO = frozenset({"", "0", "false", "no", "off"})
_ALLOCATORS = frozenset({"platform", "cuda_async"})

VARIABLES = (
    names.PYTORCH_CUDA_CONF,
    names.XLA_ALLOCATOR,
    names.TF_UNIFIED,
    names.TF_ALLOCATOR,
    names.GGML_UNIFIED,
    names.VISIBLE_DEVICES,
)


def defeat(env: str, value: str | None, *, hook: bool) -> str:
    """
    Say how a variable of the user's defeats the cap; empty where it does not.

    `value` is None where it cannot be read. The start-up hook caps PyTorch past its own variable.
    """
    text = (value or "").strip().lower()
    match env:
        case names.PYTORCH_CUDA_CONF if not hook:
            return f"hides {names.PYTORCH_CONF}, so PyTorch >= 2.10 is not capped; use that name"
        case names.XLA_ALLOCATOR if text in _ALLOCATORS:
            return f"{text} ignores {names.XLA_FRACTION}; use default"
        case names.TF_UNIFIED if text not in _NO:
            return "lifts every cap of JAX and TensorFlow; remove it"
        case names.TF_ALLOCATOR if text == "cuda_malloc_async":
            return "cuda_malloc_async keeps to no cap; remove it"
        case names.GGML_UNIFIED if text not in _NO:
            return "takes memory that cannot be attributed to the pod; remove it"
        case names.VISIBLE_DEVICES if text not in {"", "none", "void"}:
            return "overrides the cards that the device plugin assigns; remove it"
        case _:
            return ""
