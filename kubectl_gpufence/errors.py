"""
What the plugin itself has to refuse; everything else is an error of kube or of gpufence.

GpufenceError
└── MissingError     what was named is not there: name something else
"""

from __future__ import annotations

from gpufence.errors import GpufenceError


class MissingError(GpufenceError):
    """
    Raised for a pod, a node or an agent that somebody named and that is not there.
    """
