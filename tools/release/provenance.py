"""
Where the files of a release come from: an in-toto statement with SLSA's provenance.

It tells nothing that changes from one build of the same sources to the next.
"""

from __future__ import annotations

import hashlib
import json
import platform
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.release.sources import Source

BUILDER: Final = "https://gpufence.io/builders/unnamed"
_BUILD_TYPE: Final = "https://gpufence.io/builds/make-release/v1"
_PREDICATE: Final = "https://slsa.dev/provenance/v1"
_STATEMENT: Final = "https://in-toto.io/Statement/v1"


def statement(
    files: Mapping[str, bytes],
    locks: Mapping[str, bytes],
    source: Source,
    parameters: Mapping[str, str],
    builder: str,
) -> bytes:
    """Return the statement about files that were built from these sources, locks and parameters."""
    definition = {
        "buildType": _BUILD_TYPE,
        "externalParameters": dict(parameters),
        "internalParameters": {
            "SOURCE_DATE_EPOCH": source.moment,
            "python": platform.python_version(),
            "platform": f"{platform.system()}-{platform.machine()}".lower(),
            "libc": "-".join(platform.libc_ver()),
        },
        "resolvedDependencies": [*_sources(source), *_digests(locks)],
    }
    document = {
        "_type": _STATEMENT,
        "subject": _digests(files),
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _sources(source: Source) -> list[dict[str, object]]:
    named = {"uri": source.repository} if source.repository else {}
    digest = {"digest": {"gitCommit": source.commit}} if source.commit else {}
    return [{"name": "sources", **named, **digest}] if named or digest else []


def _digests(files: Mapping[str, bytes]) -> list[dict[str, object]]:
    return [
        {"name": name, "digest": {"sha256": hashlib.sha256(files[name]).hexdigest()}}
        for name in sorted(files)
    ]
