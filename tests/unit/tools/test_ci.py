"""What CI runs takes tests that were not tried for a failure."""

import subprocess
from pathlib import Path

import pytest

from tools import ROOT


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        ("9 passed in 1s", 0, 0),
        ("not tried: 6 tests for want of chromium; fetch it", 0, 1),
        ("1 failed in 1s", 2, 2),
    ],
)
def test_ci_fails_as_make_test_does_or_where_it_left_something_out(
    tmp_path: Path, said: str, status: int, expected: int
) -> None:
    """The status is that of `make test`, unless something was not tried."""
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\n[ "$*" = test ] && echo "{said}"\nexit {status}\n')
    make.chmod(0o755)
    surroundings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    command = [str(ROOT / ".ci" / "run")]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)

    assert (expected, said) == (done.returncode, done.stdout.splitlines()[0])
    assert [make] == list(tmp_path.iterdir())
