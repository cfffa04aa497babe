"""
Run one command that must not outlive the process that wanted it.

    python -I -S warden.py CALLER_PID GRACE_SECONDS LEFTOVERS COMMAND...

The warden stands between a caller and the command and waits for the first of three things:

* the command ends: so does the warden, with the same status;
* SIGTERM: the command gets one too, and SIGKILL when the grace is over;
* the caller is gone, however it ended: the command is killed, and the folder LEFTOVERS (unless
  empty) is removed, since nobody else is left to do it.

Should the warden itself be killed, the kernel kills the command. That parent-death signal is sent
when the *thread* that started the command ends (https://man7.org/linux/man-pages/man2/prctl.2.html,
PR_SET_PDEATHSIG), which makes it treacherous in a caller with threads; the warden has one thread
only. It also sees the death of a caller that forked, which would keep a pipe open.

This file runs by itself, without the packages around it, to start quickly.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

CALLER_GONE = 70
CANNOT_START = 127

_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> int:
    caller, grace_seconds, leftovers, *command = argv
    try:
        caller_gone = os.pidfd_open(int(caller))
    except ProcessLookupError:
        return CALLER_GONE
    if os.getppid() != int(caller):  # it died before, and its number may be somebody else's now
        return CALLER_GONE
    told_to_stop = stop_signals()
    try:
        child = subprocess.Popen(
            command,
            process_group=0,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - one thread, so nothing can be locked
        )
    except OSError as error:
        print(f"{command[0]}: {error}", file=sys.stderr)
        return CANNOT_START
    status = guard(child, caller_gone, told_to_stop, float(grace_seconds))
    if leftovers and ready(caller_gone, seconds=0):
        shutil.rmtree(leftovers, ignore_errors=True)
    return status


def guard(
    child: subprocess.Popen[bytes], caller_gone: int, told_to_stop: int, grace_seconds: float
) -> int:
    """Wait for a reason to end the command, then end it and whatever it started in its group."""
    child_gone = os.pidfd_open(child.pid)
    happened = ready(child_gone, caller_gone, told_to_stop)
    if told_to_stop in happened:
        child.terminate()
        ready(child_gone, caller_gone, seconds=grace_seconds)
    # Not yet waited for, the child keeps its number, and so its group's, from being given away.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    os.close(child_gone)
    return status if status >= 0 else 128 - status


def ready(*descriptors: int, seconds: float | None = None) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)}


def stop_signals() -> int:
    """Turn SIGTERM into something that can be waited for, and let a terminal's Ctrl-C pass by."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reader


def die_with_parent() -> Callable[[], None]:
    """Prepare, ahead of the fork, what the child does between fork and exec."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    warden = os.getpid()

    def ask_the_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden:  # it died in between
            os._exit(CALLER_GONE)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return ask_the_kernel


SCRIPT = Path(__file__).resolve()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
