"""What a test has left behind is found, and what ends by itself is waited for."""

import subprocess
import sys
import threading

from tests.support.running import Running

CHILD = "import sys; print(); sys.stdin.read()"


def test_a_thread_that_goes_on_is_named() -> None:
    """A thread counts that was not there before."""
    over = threading.Event()
    before = Running.now()
    thread = threading.Thread(target=over.wait, name="straggler")
    thread.start()
    found = before.left()
    over.set()
    thread.join()

    assert ["thread straggler"] == found
    assert [] == before.left()


def test_a_child_that_goes_on_is_named_by_its_command() -> None:
    """A process counts, and one that has ended and is not waited for counts as well."""
    before = Running.now()
    command = [sys.executable, "-uc", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        (running,) = before.left()

    assert f"process {child.pid}: {sys.executable} -uc {CHILD} " == running
    assert [] == before.left()


def test_what_is_about_to_end_is_waited_for() -> None:
    """A thread that ends within seconds was not left behind."""
    before = Running.now()
    threading.Timer(0.05, lambda: None).start()

    assert [] == before.left_for_good()
