"""
Be process 1 of a PID namespace: start one command and bury the orphans of all others.

    python -I -S init.py PID_FILE COMMAND...

Who starts a container leaves it to process 1 to wait for it. With the end of the command this
process ends, and with it the kernel ends everything else in the namespace: containers, their
shims, whatever a crash left behind. That is how a cluster stops.

Its own PID as the outside knows it, by which one enters its namespaces, goes into PID_FILE.

This file runs by itself, without the packages around it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CANNOT_START = 127

SCRIPT = Path(__file__).resolve()


def main(argv: Sequence[str]) -> int:
    """Wait for whoever ends, until that is the command; return its status."""
    pid_file, *command = argv
    note_outer_pid(Path(pid_file))
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    try:
        child = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        print(f"{command[0]}: {error}", file=sys.stderr)
        return CANNOT_START
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def note_outer_pid(path: Path) -> None:
    """Ask the outside's /proc, as long as it is mounted, who we are there."""
    aside = path.with_suffix(".new")
    aside.write_text(Path("/proc/self").readlink().name)
    aside.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
