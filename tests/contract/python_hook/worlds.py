"""Fresh interpreters as a container would start them, with the hook first on their path."""

import os
import subprocess
import sys
from pathlib import Path

HOOK = Path(__file__).resolve().parents[3] / "webhook" / "python"
SHARES = {
    "GPUFENCE_MEMORY_FRACTION": "0.140000",
    "GPUFENCE_MEMORY_LIMIT_BYTES": str(2150 << 20),
    "GPUFENCE_TF_FRACTION": "0.064100",
}


def interpreters() -> dict[str, str]:
    """Return every interpreter found: the one that runs the tests, and those that pyenv keeps."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = {path.parts[-3]: str(path) for path in sorted(root.glob("versions/[23].*/bin/python"))}
    return {"current": sys.executable, **kept}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write modules below a folder and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def start(
    *arguments: str,
    path: tuple[Path, ...] = (),
    environ: dict[str, str] | None = None,
    hook: bool = True,
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run an interpreter with nothing in its environment but what is given here."""
    folders = (HOOK, *path) if hook else path
    return subprocess.run(
        [python, *arguments],
        env={
            "PATH": os.defpath,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            **(SHARES if environ is None else environ),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def said(result: subprocess.CompletedProcess[str]) -> str:
    """Return what a program printed, having checked that it did not fail and did not complain."""
    assert (0, "") == (result.returncode, result.stderr)
    return result.stdout.strip()
