"""Which ways NVIDIA's driver has, and has not, come into the agent's container."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpufence import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIBRARY: Final = "libnvidia-ml.so.1"
_MOUNTS: Final = "var/run/nvidia-container-devices"
_CONTROL: Final = "dev/nvidiactl"
_FOLDERS: Final = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
_PATH: Final = "LD_LIBRARY_PATH"
_BY_CDI: Final = (
    "for NVIDIA's runtime in mode cdi, to which containerd has to pass it (pod_annotations), and a "
    "specification of that name on the node (nvidia-ctk cdi list)"
)
_MORE: Final = "docs/platforms.md has the ways for each node image"


def driver_remedy(environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """Return what to do where NVML does not start: what was tried, and what it did not bring."""
    missing = [*_missing(environ, root)]
    if not missing:
        return (
            f"{_LIBRARY} and the devices are in this container: nvidia-smi on the node says "
            "whether the driver is well; GPUFENCE_NVML_LIBRARY names another library"
        )
    tried = "; ".join(_tried(environ, root)) or "nothing that can be seen from inside"
    return f"tried: {tried}; missing: {', '.join(missing)}; {_MORE}"


def _tried(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    if cards := environ.get(names.VISIBLE_DEVICES):
        yield f"{names.VISIBLE_DEVICES}={cards}, for NVIDIA's runtime (its class, or the default)"
    if devices := environ.get(names.CDI_ANNOTATION):
        yield f"CDI annotation {devices}, {_BY_CDI}"
    if (root / _MOUNTS).is_dir():
        mounted = ", ".join(sorted(path.name for path in (root / _MOUNTS).iterdir()))
        yield f"volume mount /{_MOUNTS}/{mounted}, for a runtime that accepts mounts"
    for folder in _searched(environ):
        if folder not in _FOLDERS and _inside(root, folder).is_dir():
            yield f"folder {folder} of the node"


def _missing(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    folders = [*_searched(environ)]
    if not any((_inside(root, folder) / _LIBRARY).exists() for folder in folders):
        yield f"{_LIBRARY} in {':'.join(folders)}"
    if not (root / _CONTROL).exists():
        yield f"/{_CONTROL}"


def _searched(environ: Mapping[str, str]) -> Iterator[str]:
    given = [folder for folder in environ.get(_PATH, "").split(":") if folder]
    yield from dict.fromkeys([*given, *_FOLDERS])


def _inside(root: Path, folder: str) -> Path:
    return root / folder.lstrip("/")
