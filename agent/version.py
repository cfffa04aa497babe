"""Which gpufence this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Return the installed version; a source tree that nobody installed has none."""
    try:
        return metadata.version("gpufence")
    except metadata.PackageNotFoundError:
        return "unknown"
