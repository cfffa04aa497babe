"""
The import contracts bite: each is broken on purpose in a copy of the tree.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES, ROOT

LINTER = str(Path(sys.executable).with_name("lint-imports"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return a copy of the sources that a test may break.
    """
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "broken", "contract"),
    [
        ("gpufence/names.py", "kubernetes", "gpufence imports nothing of ours and no third party"),
        ("gpufence/share.py", "kube.client", "gpufence imports nothing of ours"),
        ("webhook/__init__.py", "agent", "The programs never import each other"),
        ("agent/__init__.py", "kubernetes", "Only kube.kubeconfig knows the Kubernetes client"),
        ("certs/__init__.py", "pynvml", "Only agent.nvml knows NVML"),
        ("agent/__init__.py", "fastapi", "Only the webhook knows the web framework"),
        ("simulator/__init__.py", "cryptography", "Only certs and webhook.tls know cryptography"),
        ("kube/__init__.py", "certs", "kube knows the words but none of the programs"),
        ("agent/model/memory.py", "agent.judge", "The agent's parts know those below them"),
        ("agent/judge/brakes.py", "agent.events", "The agent's parts know those below them"),
        ("webhook/policy.py", "webhook.rewrite", "The webhook's parts know those below them"),
        ("service/logs.py", "kube", "service serves every program and knows none"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    copy: Path, module: str, broken: str, contract: str
) -> None:
    """
    Adding one forbidden import makes lint-imports fail and name the contract.
    """
    path = copy / module
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\nimport {broken}\n", encoding="utf-8")
    try:
        result = subprocess.run(
            [LINTER, "--no-logo", "--no-cache"],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_text(before, encoding="utf-8")

    assert 1 == result.returncode
    assert any(contract in line and "BROKEN" in line for line in result.stdout.splitlines())
