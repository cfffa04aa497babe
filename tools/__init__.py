"""What writes files of the tree, or files from it: `python -m tools`. It is not shipped."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
