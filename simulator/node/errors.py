"""
PURE. What keeps a pod, or the node itself, from running.

    NodeError              anything below; the message says what to do
      NotYetError          a container cannot start as things are: shown as waiting, tried again
      StartError           the runtime could not start a container: it has ended before it began
      HookError            a program that the runtime calls before a start has failed
      RefusedPodError      the pod can never run here: its phase becomes Failed
      SetupError           the node cannot begin or do what is asked of it
"""

from __future__ import annotations

from gpufence.errors import GpufenceError


class NodeError(GpufenceError):
    """Covers every way in which the simulated node can fail its pods or its caller."""


class NotYetError(NodeError):
    """Raised with the kubelet's own words where a variable or a volume has no source yet."""


class StartError(NodeError):
    """Raised with the runtime's own words where a container that was made does not start."""


class HookError(NodeError):
    """Raised with the words that a hook has ended with, and its code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class RefusedPodError(NodeError):
    """Raised for a pod that no amount of waiting lets run here."""


class SetupError(NodeError):
    """Raised when the node, or something on it, is not as the caller supposes."""
