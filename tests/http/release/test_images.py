"""Archives of images have nothing in them that another build would have otherwise."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.release.archive import ReleaseError
from tools.release.images import digest_of, forget_stages, image_archives, packed


def _blob(layout: Path, document: Any) -> dict[str, Any]:
    content = json.dumps(document).encode()
    digest = hashlib.sha256(content).hexdigest()
    folder = layout / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def _layout(folder: Path, stage: str) -> Path:
    history = [{"created_by": "USER 65532"}, {"created_by": "CMD", "comment": f"FROM {stage}"}]
    config = _blob(folder, {"os": "linux", "history": history})
    manifest = _blob(folder, {"config": config, "layers": []})
    (folder / "index.json").write_text(json.dumps({"manifests": [manifest]}), encoding="utf-8")
    return folder


def test_a_made_up_stage_changes_no_digest(tmp_path: Path) -> None:
    """Images that differ by the names of buildah's stages alone become equal."""
    one, other = _layout(tmp_path / "a", "1f0c"), _layout(tmp_path / "b", "9d2e")
    before = digest_of(one) == digest_of(other)
    forget_stages(one)
    forget_stages(other)

    assert not before
    assert digest_of(one) == digest_of(other)
    assert packed(one, 7) == packed(other, 7)


def test_every_digest_is_that_of_its_content(tmp_path: Path) -> None:
    """What was written anew is found by its digest, and what it replaces is gone."""
    layout = _layout(tmp_path, "1f0c")
    forget_stages(layout)
    blobs = list((layout / "blobs" / "sha256").iterdir())

    assert [path.name for path in blobs] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in blobs
    ]
    assert digest_of(layout).removeprefix("sha256:") in {path.name for path in blobs}


def test_an_archive_belongs_to_nobody(tmp_path: Path) -> None:
    """An archive's entries have one moment, no owner, and are in order."""
    with tarfile.open(fileobj=io.BytesIO(packed(_layout(tmp_path, "1f0c"), 7))) as content:
        entries = content.getmembers()

    assert sorted(each.name for each in entries) == [each.name for each in entries]
    assert {(0, "", 7)} == {(each.uid, each.uname, each.mtime) for each in entries}


def test_a_machine_without_buildah_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where buildah is missing, that is what the error says."""
    for name in ("sh", "sed", "head", "dirname"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ReleaseError, match=r"buildah.* is not there or does not answer"):
        image_archives("base", "1", 7)
