"""
How a workload ends before its script does.

    WorkloadError        anything below: a message for stderr and an exit code
      NoCardError        no card is visible to the process
      OutOfMemoryError   an allocation failed, by the cap or by the card
      FrameworkError     the framework cannot live with its settings
    StoppedError         a signal asked the process to end
"""

from __future__ import annotations

from gpufence.errors import GpufenceError

SIGNAL_EXIT = 128


class WorkloadError(GpufenceError):
    """Covers every failure that a program of its kind would end with."""

    code = 1


class NoCardError(WorkloadError):
    """Raised when the environment or the machine leaves the process without a card."""


class OutOfMemoryError(WorkloadError):
    """Raised with the framework's own words when an allocation fails; what was held still is."""


class FrameworkError(WorkloadError):
    """Raised when the framework would end the process over its settings."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class StoppedError(Exception):
    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by signal {signal_number}")
        self.code = SIGNAL_EXIT + signal_number
