"""
What krew refuses in a manifest, and in an archive, as its validator and its installer have it.

Krew's own program is Go and is not asked here; its rules are few and have not changed for years.
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# internal/index/validation/validate.go, cmd/validate-krew-manifest/main.go
_API_VERSION = "krew.googlecontainertools.github.com/v1alpha2"
_NAME = re.compile(r"[\w-]+")
_SHA256 = re.compile(r"[a-f0-9]{64}")
_SEMVER = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LONGEST_SHORT = 70
_LONGEST_LINE = 80


def objections(file_name: str, document: Any) -> list[str]:
    """Return why krew, or who keeps its index, would not take a manifest."""
    return [*_of_head(file_name, document), *_of_spec(document["spec"])]


def _of_head(file_name: str, document: Any) -> Iterator[str]:
    name = document["metadata"]["name"]
    if document["apiVersion"] != _API_VERSION:
        yield "apiVersion"
    if document["kind"] != "Plugin":
        yield "kind"
    if f"{name}.yaml" != file_name or not _NAME.fullmatch(name):
        yield "name"
    # The naming guide: what every plugin is for needs no words.
    if {"kubectl", "kube", "plugin"} & set(name.split("-")):
        yield "name"


def _of_spec(spec: Any) -> Iterator[str]:
    short = spec["shortDescription"]
    if not short or "\n" in short or len(short) > _LONGEST_SHORT or short.endswith("."):
        yield "shortDescription"
    for field in ("description", "caveats"):
        if any(len(line) > _LONGEST_LINE for line in spec[field].splitlines()):
            yield field
    if not _SEMVER.fullmatch(spec["version"]):
        yield "version"
    if not spec["homepage"].startswith("https://"):
        yield "homepage"
    if not spec["platforms"]:
        yield "platforms"
    for platform in spec["platforms"]:
        yield from _of_platform(platform)


def _of_platform(platform: Any) -> Iterator[str]:
    if not platform.get("uri"):
        yield "uri"
    if not _SHA256.fullmatch(platform.get("sha256", "")):
        yield "sha256"
    if not platform.get("bin"):
        yield "bin"
    if "files" in platform and not all(
        each.get("from") and each.get("to") for each in platform["files"] or [{}]
    ):
        yield "files"
    selector = platform.get("selector") or {}
    expressions = selector.get("matchExpressions", [])
    keys = [*selector.get("matchLabels", {}), *(each["key"] for each in expressions)]
    if not keys or not set(keys) <= {"os", "arch"}:
        yield "selector"


def install(archive: Path, platform: Any, name: str, root: Path) -> Path:
    """
    Unpack and link as krew does, and return the link: entries keep their permissions, LICENSE has
    to be there.
    """
    store, links = root / "store" / name, root / "bin"
    store.mkdir(parents=True)
    links.mkdir()
    with zipfile.ZipFile(archive) as content:
        for entry in content.infolist():
            target = store / entry.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read(entry))
            target.chmod(entry.external_attr >> 16 & 0o777)

    assert (store / "LICENSE").is_file()
    link = links / f"kubectl-{name.replace('-', '_')}"
    link.symlink_to(store / platform["bin"])
    return link
