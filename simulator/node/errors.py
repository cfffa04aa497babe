"""
PURE. What keeps a pod, or the node itself, from running.

    NodeError              anything below; the message says what to do
      NotYetError          a container cannot start as things are: shown as waiting, tried again
      RefusedPodError      the pod can never run here: its phase becomes Failed
      SetupError           the node cannot begin or do what is asked of it
"""

from __future__ import annotations

from gpufence.errors import GpufenceError


class NodeError(GpufenceError):
    """Covers every way in which the simulated node can fail its pods or its caller."""


class NotYetError(NodeError):
    """Raised with the kubelet's own words where a variable or a volume has no source yet."""


class RefusedPodError(NodeError):
    """Raised for a pod that no amount of waiting lets run here."""


class SetupError(NodeError):
    """Raised when the node, or something on it, is not as the caller supposes."""
