"""The whole story with a real PyTorch: one tenant keeps its cap, the other takes it away."""

import subprocess
import sys

import pytest

from tests.frameworks.cases import is_chosen

COMMAND = [sys.executable, "-m", "simulator", "demo", "--framework", "torch"]

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not is_chosen("torch-2.15"), reason="not asked for by ONLY"),
]


def test_the_story_happens_with_a_real_pytorch() -> None:
    """PyTorch refuses itself at the webhook's cap, its neighbour resets the cap and is evicted."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stdout
    assert "2.04 GiB allowed" in done.stdout
    assert "GPUMemoryCapIneffective" in done.stdout
    assert "GPUMemoryEvicted" in done.stdout
    assert "the neighbour never noticed" in done.stdout


def test_a_real_pytorch_gives_its_cache_back() -> None:
    """The mounted hook empties PyTorch's cache for a lender that wakes up; nothing is evicted."""
    done = subprocess.run(
        [*COMMAND, "--story", "burst"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "the second gave back: it holds 4396 MiB" in done.stdout
