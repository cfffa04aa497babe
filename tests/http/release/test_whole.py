"""Two clean clones release the same bytes; the real cosign takes them, and refuses all others."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import COSIGN
from tools import ROOT

pytestmark = [pytest.mark.release, pytest.mark.timeout(1200)]

SIGN = ("--yes", "--key=cosign.key", "--tlog-upload=false", "--use-signing-config=false")
VERIFY = ("--key=cosign.pub", "--insecure-ignore-tlog=true")
SBOM = b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}'


class Cosign:
    """Sigstore's own program, in a folder with a pair of keys that it made."""

    def __init__(self, folder: Path) -> None:
        self._program = COSIGN.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
        self.folder = folder
        made = self("generate-key-pair")
        assert made.returncode == 0, made.stdout

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            cwd=self.folder,
            env={"HOME": str(self.folder), "COSIGN_PASSWORD": "open sesame"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def cosign(tmp_path_factory: pytest.TempPathFactory) -> Cosign:
    return Cosign(tmp_path_factory.mktemp("cosign"))


def released(clone: Path, commit: str) -> dict[str, bytes]:
    """Clone a commit, make a release of it, and return its files."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    unset = {"SOURCE_DATE_EPOCH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    variables = {name: text for name, text in os.environ.items() if name not in unset}
    subprocess.run(["make", "release"], cwd=clone, env=variables, check=True)
    return {path.name: path.read_bytes() for path in (clone / "dist").iterdir()}


def test_two_clean_clones_release_the_same_bytes(tmp_path: Path) -> None:
    """Every file is equal, from wherever it was built."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]  # before a commit while this runs
    commit = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    one = released(tmp_path / "one", commit)
    two = released(tmp_path / "some" / "longer" / "way" / "two", commit)

    assert 4 == len(one)
    assert {name: hashlib.sha256(content).hexdigest() for name, content in one.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in two.items()
    }


def test_cosign_tells_a_changed_byte(cosign: Cosign) -> None:
    """What docs/releasing.md signs verifies, and with one byte changed it does not."""
    sums = cosign.folder / "SHA256SUMS"
    sums.write_bytes(b"0" * 64 + b"  kubectl-gpufence.pyz\n")
    bundle = "--bundle=SHA256SUMS.sigstore.json"
    signed = cosign("sign-blob", *SIGN, bundle, sums.name)
    good = cosign("verify-blob", *VERIFY, bundle, sums.name)
    sums.write_bytes(b"1" + sums.read_bytes()[1:])
    bad = cosign("verify-blob", *VERIFY, bundle, sums.name)

    assert (0, 0) == (signed.returncode, good.returncode), signed.stdout + good.stdout
    assert "Verified OK" in good.stdout
    assert 0 != bad.returncode
    assert "Verified OK" not in bad.stdout


def test_cosign_tells_whose_bill_of_materials_it_is(cosign: Cosign) -> None:
    """What docs/releasing.md attests is about the file that was signed, and about no other."""
    (cosign.folder / "sbom.json").write_bytes(SBOM)
    file = cosign.folder / "plugin.pyz"
    file.write_bytes(b"#!/usr/bin/env python3\n")
    about = ("--type=cyclonedx", "--bundle=plugin.sbom.sigstore.json", file.name)
    signed = cosign("attest-blob", *SIGN, "--predicate=sbom.json", *about)
    good = cosign("verify-blob-attestation", *VERIFY, *about)
    file.write_bytes(b"#!/usr/bin/env python4\n")
    bad = cosign("verify-blob-attestation", *VERIFY, *about)

    assert (0, 0) == (signed.returncode, good.returncode), signed.stdout + good.stdout
    assert 0 != bad.returncode
