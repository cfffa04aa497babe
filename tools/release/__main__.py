"""
`make release`: the wheel, the plugin as one file with and without a Python of its own, its archives
and manifest for krew, the chart, images, checksums, provenance and signatures.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools.release.archive import ReleaseError
from tools.release.files import PLACEHOLDER, SUMS, Order, release
from tools.release.krew import NAME
from tools.release.provenance import BUILDER
from tools.release.signing import PASSWORD_VARIABLE, read_signer
from tools.release.sources import ROOT, read_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.release.sources import Source


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a release into a folder, and say what is not among them."""
    call = parser().parse_args(argv)
    try:
        source = read_source(call.source)
        order = ordered(call, source)
        files = release(source, order)
    except ReleaseError as error:
        sys.stderr.write(f"make release: {error}\n")
        return 1
    call.folder.mkdir(parents=True, exist_ok=True)
    for pattern in (f"{SUMS}.sig*", f"{NAME}-*.provenance.*"):
        for signature in call.folder.glob(pattern):
            signature.unlink()  # of an earlier release, which may have been signed
    for name, content in files.items():
        (call.folder / name).write_bytes(content)
        (call.folder / name).chmod(0o755 if name.endswith(".pyz") else 0o644)
    sys.stdout.write(files[SUMS].decode())
    sys.stdout.write(f"==> in {call.folder}\n")
    for notice in notices(source, order):
        sys.stderr.write(f"make release: {notice}\n")
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    command.add_argument("--folder", type=Path, default=ROOT / "dist", metavar="FOLDER")
    command.add_argument(
        "--website",
        default=PLACEHOLDER,
        metavar="URL",
        help="below which the files will lie; krew's manifest names it",
    )
    command.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="sign with this key: cosign's, or a PEM with a private key on P-256; its passphrase"
        f" is in {PASSWORD_VARIABLE}",
    )
    command.add_argument(
        "--freezer",
        type=Path,
        metavar="PYTHON",
        help="make the plugin with a Python of its own, too, by this Python, which has PyInstaller",
    )
    command.add_argument(
        "--images",
        default="",
        metavar="BASE",
        help="build the images on this one, too, with buildah",
    )
    command.add_argument(
        "--source",
        default="",
        metavar="URI",
        help="where the sources can be had (where they were cloned from)",
    )
    command.add_argument(
        "--builder",
        default=BUILDER,
        metavar="URI",
        help=f"who builds, in the provenance ({BUILDER})",
    )
    return command


def notices(source: Source, order: Order) -> list[str]:
    """Return what speaks against publishing these files as they are."""
    found = []
    if source.uncommitted:
        found.append(f"{source.uncommitted} files are not committed; do not publish this")
    if order.website == PLACEHOLDER:
        found.append(
            f"gpufence.yaml leads krew to a placeholder, {PLACEHOLDER}, where nothing is; "
            "remedy: make release URL=https://where/they/will/lie"
        )
    if order.signer is None:
        found.append("nothing is signed; remedy: make release KEY=cosign.key")
    if order.freezer is None:
        found.append("no plugin with a Python of its own is among them (STANDALONE=0)")
    if not order.base:
        found.append("no images are among them; they are with IMAGES=1, which takes buildah")
    return found


def ordered(call: argparse.Namespace, source: Source) -> Order:
    """
    Return what a call asks for.

    Raises ReleaseError where a signature would be about sources that nobody can have.
    """
    if call.key is not None and source.uncommitted:
        raise ReleaseError(
            f"KEY {str(call.key)!r} would sign {source.uncommitted} files that no commit has; "
            "remedy: git commit, or git stash --include-untracked"
        )
    password = os.environ.get(PASSWORD_VARIABLE, "")
    return Order(
        website=call.website.rstrip("/"),
        builder=call.builder,
        signer=read_signer(call.key, password) if call.key is not None else None,
        freezer=call.freezer.absolute() if call.freezer is not None else None,
        base=call.images,
    )


if __name__ == "__main__":
    sys.exit(main())
