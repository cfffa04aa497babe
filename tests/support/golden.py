"""Files of what was reviewed, and how one is written anew after a change on purpose."""

import os
from pathlib import Path

WRITE = os.environ.get("GPUFENCE_GOLDEN") == "write"


def assert_reviewed(file: Path, shown: str) -> None:
    """Compare with what was reviewed; the failure says how the file is written anew."""
    if WRITE:
        file.write_text(shown, encoding="utf-8")
    anew = "on purpose? GPUFENCE_GOLDEN=write in front of the call writes it anew: read `git diff`"

    assert file.read_text(encoding="utf-8") == shown, f"{file.name} is not what is shown; {anew}"
