"""Pins of older releases, from what Go says that it fetched."""

from pathlib import Path

import pytest

from simulator.controlplane.older import read_releases
from simulator.controlplane.pins import main

OWN = """module k8s.io/kubernetes

replace (
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
)
"""
# Answers as Go does: one object for each module, one after the other.
FAKE_GO = """#!/bin/sh
[ "$1" = version ] && echo go version go1.99.0 linux/amd64 && exit
shift 3
for word in "$@"; do
    name=${{word%@*}}
    if [ "$name" = "{lacking}" ]; then echo '{{"Path": "it", "Error": "403"}}'; continue; fi
    printf '{{"Path": "%s", "Dir": "{sources}", "Sum": "h1:%s", "GoModSum": "h1:mod"}}\\n' \\
        "$name" "${{word#*@}}"
done
"""
PINNED = """k8s.io/kubernetes v1.30.14 h1:v1.30.14
k8s.io/api v0.30.14 h1:v0.30.14
k8s.io/api v0.30.14/go.mod h1:mod
k8s.io/client-go v0.30.14 h1:v0.30.14
k8s.io/client-go v0.30.14/go.mod h1:mod
"""


def fake_go(folder: Path, monkeypatch: pytest.MonkeyPatch, lacking: str = "") -> None:
    (folder / "go.mod").write_text(OWN)
    go = folder / "go"
    go.write_text(FAKE_GO.format(sources=folder, lacking=lacking))
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_release_is_pinned_with_its_staging_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubernetes' own line comes first, samples are left out, and a build can read the result."""
    fake_go(tmp_path, monkeypatch)
    status = main(["v1.30.14"])
    printed = capsys.readouterr().out
    (tmp_path / "versions.sum").write_text(printed)

    assert (0, PINNED) == (status, printed)
    assert ["1.30"] == list(read_releases(tmp_path / "versions.sum"))


def test_what_cannot_be_fetched_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of which a module is missing is not pinned."""
    fake_go(tmp_path, monkeypatch, lacking="k8s.io/api")
    status = main(["v1.30.14"])
    captured = capsys.readouterr()

    assert (1, "") == (status, captured.out)
    assert "Go could not fetch everything: 403" in captured.err
