"""
What the provenance says: which files, from which sources, by whom, and nothing that time changes.
"""

import hashlib
import json
from typing import Any

import pytest

from tools.release.provenance import statement
from tools.release.sources import Source, public_address

SOURCE = Source(7, "c" * 40, "git+https://host.example/x/gpufence")


def _said(source: Source = SOURCE) -> Any:
    files = {"b.zip": b"b", "a.whl": b"a"}
    locks = {"requirements/plugin.txt": b"lock"}
    said = statement(files, locks, source, {"URL": "https://u.example"}, "https://me.example")
    return json.loads(said)


def test_every_file_is_a_subject() -> None:
    """Each file is named with the digest by which anybody can find it here."""
    said = _said()
    digests = [hashlib.sha256(content).hexdigest() for content in (b"a", b"b")]

    assert "https://in-toto.io/Statement/v1" == said["_type"]
    assert "https://slsa.dev/provenance/v1" == said["predicateType"]
    assert [
        {"name": name, "digest": {"sha256": digest}}
        for name, digest in zip(("a.whl", "b.zip"), digests, strict=True)
    ] == said["subject"]


def test_sources_locks_and_builder_are_named() -> None:
    """Repository and commit, every lock, the moment, the parameters and who built are told."""
    predicate = _said()["predicate"]
    definition = predicate["buildDefinition"]
    sources, lock = definition["resolvedDependencies"]

    assert {
        "name": "sources",
        "uri": "git+https://host.example/x/gpufence",
        "digest": {"gitCommit": "c" * 40},
    } == sources
    assert "requirements/plugin.txt" == lock["name"]
    assert {"URL": "https://u.example"} == definition["externalParameters"]
    assert 7 == definition["internalParameters"]["SOURCE_DATE_EPOCH"]
    assert {"builder": {"id": "https://me.example"}} == predicate["runDetails"]


def test_sources_that_nobody_knows_are_left_out() -> None:
    """Sources without a repository and a commit are no dependency with an empty name."""
    definition = _said(Source(7))["predicate"]["buildDefinition"]

    assert ["requirements/plugin.txt"] == [
        each["name"] for each in definition["resolvedDependencies"]
    ]


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://host.example/x/y.git", "git+https://host.example/x/y.git"),
        ("https://me:token@host.example/x/y", "git+https://host.example/x/y"),
        ("git@host.example:x/y.git", "git+ssh://host.example/x/y.git"),
        ("ssh://git@host.example:22/x/y", "git+ssh://host.example:22/x/y"),
        ("/home/me/gpufence", ""),
        ("file:///home/me/gpufence", ""),
        ("", ""),
    ],
)
def test_an_origin_is_told_as_others_may_know_it(remote: str, address: str) -> None:
    """Neither a token nor a folder of somebody's machine gets into a provenance."""
    assert address == public_address(remote)
