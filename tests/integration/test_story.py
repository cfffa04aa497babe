"""The demo, as somebody runs it who has just cloned the project."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("followed")

COMMAND = [sys.executable, "-m", "simulator", "demo"]
FENCE_STEPS = (
    "per_process_memory_fraction:0.140000",
    "CUDA out of memory",
    "$ kubectl gpufence top -A",
    "COMMITTED",
    "GPUMemoryEvicted",
    "the neighbour never noticed",
    "all is well",
    "Yours now",
)
# The neighbour's line: a slow machine may come too late for the one who is about to go.
SIDE_BY_SIDE = r"vision +trainer +gpu-1 +1 +3072Mi +2150Mi +\d{4}Mi .*within"
"""Declared, told and used, while a neighbour takes too much."""
DRIVER_STEPS = (
    "NVIDIA_GPU_MEMORY_LIMIT=3072",
    "CUDA error: out of memory",
    "nothing was evicted",
    "GPUMemoryLimitAbsent",
    "GPUMemoryEvicted",
    "keeps what it has",
)
NEED_STEPS = (
    "there is no target yet",
    "the targets can be trusted",
    "by profile deployment-tagger",
    "twice the models",
    "The 8 shares alone would have taken",
    "nobody went, and nobody had to guess a number",
)
BURST_STEPS = (
    "limit 12288Mi, 6144Mi of it promised",
    "borrowing",
    "it borrows what the idle one is owed, and stays",
    "the second gave back: it holds 4396 MiB, within its request",
    "nothing was evicted",
    "the first has what it was promised, and holds 5700 MiB",
)
STEPS = (
    "condition met",
    "It stays: one that comes back",
    "Insufficient nvidia.com/gpu",
    "GPUIdleWarning",
    "GPUIdleReleased",
    "both cards are the job's",
    "GPUIdleWoken",
    "nobody had to ask",
    "is kept until",
    "KEPT",
)


@pytest.mark.usefixtures("full_assets")
def test_the_story_happens_as_it_is_told_and_leaves_nothing() -> None:
    """The demo shows a rewrite and an eviction; kept, it stays until SIGTERM and leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="gf-") as folder:  # a short name, for sockets
        environment = {**os.environ, "TMPDIR": folder}
        with subprocess.Popen(
            [*COMMAND, "--keep"], stdout=subprocess.PIPE, env=environment, text=True
        ) as demo:
            assert demo.stdout is not None
            told = list(iter_until(demo.stdout, "Yours now"))
            demo.terminate()
            rest = demo.stdout.read()
        left = [path.name for path in Path(folder).iterdir()]

    assert list(FENCE_STEPS) == [text for text in FENCE_STEPS if text in "".join(told)], told
    assert re.search(SIDE_BY_SIDE, "".join(told)), [one for one in told if "speech " in one]
    assert 0 == demo.returncode, rest
    assert [] == left
    assert [] == [process for process in _processes() if folder in process]


@pytest.mark.nightly
@pytest.mark.usefixtures("full_assets")
def test_the_story_of_two_colleagues_happens() -> None:
    """An idle worker is released for the job that needs its card, and comes back after it."""
    done = subprocess.run(
        [*COMMAND, "--story", "idle"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert list(STEPS) == [text for text in STEPS if text in done.stdout]
    assert sorted(map(done.stdout.index, STEPS)) == list(map(done.stdout.index, STEPS))
    assert "stumbled" not in done.stderr
    assert [] == [pid for pid in _processes() if "gpufence-demo-" in pid]


@pytest.mark.nightly
@pytest.mark.usefixtures("full_assets")
def test_the_story_of_the_driver_happens() -> None:
    """The driver refuses a tenant, which stays; without the driver's limit the agent evicts it."""
    done = subprocess.run(
        [*COMMAND, "--story", "driver"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert list(DRIVER_STEPS) == [text for text in DRIVER_STEPS if text in done.stdout]
    assert [] == [pid for pid in _processes() if "gpufence-demo-" in pid]


@pytest.mark.nightly
@pytest.mark.usefixtures("full_assets")
def test_the_story_of_three_models_happens() -> None:
    """What is measured becomes a proposal, then the limit, and the cards hold twice the models."""
    done = subprocess.run(
        [*COMMAND, "--story", "need"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert list(NEED_STEPS) == [text for text in NEED_STEPS if text in done.stdout]
    assert "stumbled" not in done.stderr
    assert [] == [pid for pid in _processes() if "gpufence-demo-" in pid]


@pytest.mark.nightly
@pytest.mark.usefixtures("full_assets")
def test_the_story_of_a_loan_happens() -> None:
    """What is lent comes back by itself; without the hook its borrower is evicted for it."""
    done = subprocess.run(
        [*COMMAND, "--story", "burst"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert list(BURST_STEPS) == [text for text in BURST_STEPS if text in done.stdout]
    assert {"GPUMemoryRecalled", "GPUMemoryEvicted"} <= set(done.stdout.split())
    assert [] == [pid for pid in _processes() if "gpufence-demo-" in pid]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--story", "love"], "choose from"),
        (["--story", "need", "--framework", "torch"], "played by simulated ones"),
        (["--story", "idle", "--framework", "torch"], "played by simulated ones"),
        (["--story", "driver", "--framework", "torch"], "played by simulated ones"),
    ],
)
def test_a_story_that_nobody_knows_is_refused(arguments: list[str], error: str) -> None:
    """The error says which stories there are, before anything is started."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert error in done.stderr


def test_the_demo_explains_itself() -> None:
    """Its help says what it does and how to keep everything running."""
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=False)

    assert 0 == done.returncode
    assert "--keep" in done.stdout


def iter_until(lines: Iterable[str], last: str) -> Iterator[str]:
    """Read until a line that says so."""
    for line in lines:
        yield line
        if last in line:
            return


def _processes() -> list[str]:
    """Return the environment of every process of this user, as far as it can be read."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append((folder / "environ").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found
