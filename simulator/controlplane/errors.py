"""
What can go wrong between wanting a control plane and having one.

    ControlPlaneError        anything below; the message says what to do
      BuildError             the programs cannot be had: no Go, no network, no space
      StartError             a program ended early or was not ready in time
      RequestError           the running API server, or kubectl, said no
"""

from gpufence.errors import GpufenceError


class ControlPlaneError(GpufenceError):
    """Covers every way in which the control plane can fail its caller."""


class BuildError(ControlPlaneError):
    """Raised when a program of the control plane can neither be found nor built."""


class StartError(ControlPlaneError):
    """Raised when a program of the control plane ends early or is not ready in time."""


class RequestError(ControlPlaneError):
    """Raised when the API server, or kubectl on our behalf, refuses what was asked."""
