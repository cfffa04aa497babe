"""
What can go wrong between wanting a cluster and having one.

    ClusterError             anything below; the message says what to do
      NeedError              this machine or its user lacks something that can be named
      ImageError             an image could not be made
      MachineError           a program of the node ended early or was not ready in time
"""

from gpufence.errors import GpufenceError


class ClusterError(GpufenceError):
    """
    Covers every way in which the cluster can fail its caller.
    """


class NeedError(ClusterError):
    """
    Raised before anything is started, with all that is missing and how to get it.
    """


class ImageError(ClusterError):
    """
    Raised when an image cannot be built, with the last words of who tried.
    """


class MachineError(ClusterError):
    """
    Raised when a part of the node ends early or is not ready in time.
    """
