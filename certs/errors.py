"""
What can stop the certificates' own program.

GpufenceError
└── CertsError
    ├── MissingSecretError   the Secret is not there and may not be created: apply the manifests
    └── ContendedError       others kept writing at the same time: run again
"""

from __future__ import annotations

from gpufence.errors import GpufenceError


class CertsError(GpufenceError):
    """
    Anything that stops a run and that a person can do something about.
    """


class MissingSecretError(CertsError):
    """
    Raised when a Secret is absent and our account may not create it.
    """

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(
            f"secret {namespace}/{name} does not exist and this account may not create it; "
            "apply the manifests of gpufence, which bring it empty"
        )


class ContendedError(CertsError):
    """
    Raised when every attempt met somebody else's newer write.
    """

    def __init__(self, attempts: int) -> None:
        super().__init__(
            f"{attempts} attempts in a row met newer writes of somebody else; run it again, and "
            "find out who else writes the Secrets or the webhook configuration of gpufence"
        )
