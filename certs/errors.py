"""
What can stop the certificates' own program.

GpufenceError
└── CertsError
    ├── MissingObjectError   an object is not there and is not ours to create: apply the manifests
    ├── ContendedError       others kept writing at the same time: run again
    └── OvertakenError       another run is ahead of this one: read again, then decide again
"""

from __future__ import annotations

from gpufence.errors import GpufenceError


class CertsError(GpufenceError):
    """
    Anything that stops a run and that a person can do something about.
    """


class MissingObjectError(CertsError):
    """
    Raised when an object is absent and our account may not create it.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} does not exist; apply the manifests of gpufence, which bring it")


class ContendedError(CertsError):
    """
    Raised when every attempt met somebody else's newer write.
    """

    def __init__(self, attempts: int) -> None:
        super().__init__(
            f"{attempts} attempts in a row met newer writes of somebody else; run it again, and "
            "find out who else writes the Secrets or the webhook configuration of gpufence"
        )


class OvertakenError(CertsError):
    """
    Raised when another run has changed the CA while this one was about to end an overlap.
    """
