"""What must never stand in the tree: addresses of package indexes and paths of one machine."""

import subprocess

from tests.support.sources import ROOT

HOSTS = ("py" + "pi.org", "python" + "hosted", "proxy." + "golang", "registry." + "npmjs")


def test_no_file_names_a_package_index() -> None:
    """No tracked file names a package index, so that every mirror serves as well."""
    patterns = [argument for host in HOSTS for argument in ("-e", host)]
    found = subprocess.run(
        ["git", "grep", "-lIF", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert [] == found.stdout.split()
