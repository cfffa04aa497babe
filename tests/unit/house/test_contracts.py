"""The import contracts bite: each is broken on purpose in a copy of the tree."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES, ROOT, TOOLS, module_name

LINTER = str(Path(sys.executable).with_name("lint-imports"))
BREACHES = [
    ("gpufence/names.py", "kubernetes", "gpufence imports nothing of ours and no third party"),
    ("gpufence/share.py", "kube.client", "gpufence imports nothing of ours and no third party"),
    ("webhook/__init__.py", "agent", "The programs never import each other"),
    ("agent/__init__.py", "kubernetes", "Only kube.kubeconfig knows the Kubernetes client"),
    ("certs/__init__.py", "urllib3", "Only kube speaks HTTP to API servers"),
    ("certs/__init__.py", "pynvml", "Only agent.nvml knows NVML"),
    ("agent/__init__.py", "fastapi", "Only the webhook knows the web framework"),
    ("simulator/__init__.py", "cryptography", "Only certs and webhook.tls know cryptography"),
    ("simulator/progress.py", "tools", "Nothing that is shipped knows the tools"),
    ("kubectl_gpufence/__init__.py", "trustme", "Only the simulator knows trustme"),
    ("kube/__init__.py", "certs", "kube knows the words but none of the programs"),
    ("service/logs.py", "kube", "service serves every program and knows none"),
    ("agent/model/memory.py", "agent.judge", "The agent's parts know those below them"),
    (
        *("agent/loop/worker.py", "agent.concerns.need"),
        "Only agent.program knows what is looked after beside the fence",
    ),
    (
        *("agent/concerns/activity/pods.py", "agent.concerns.need.ledger"),
        "What is looked after beside the fence knows none of the others",
    ),
    ("agent/judge/brakes.py", "agent.events", "The agent's parts know those below them"),
    ("controller/model.py", "controller.decide", "The controller's parts know those below them"),
    (
        *("controller/decide/room.py", "controller.decide.release"),
        "A release is decided in one direction",
    ),
    (
        *("controller/cluster/pods.py", "controller.cluster.owners"),
        "The controller's view of the cluster is wired in one direction",
    ),
    ("webhook/policy.py", "webhook.rewrite", "The webhook's parts know those below them"),
    (
        *("webhook/program.py", "webhook.command"),
        "Only the webhook's command line knows the command without a cluster",
    ),
    (
        *("agent/cluster/node_cards.py", "agent.cluster.pod_index"),
        "The agent's cluster part is wired in one direction",
    ),
    (
        *("webhook/rewrite/inputs.py", "webhook.rewrite.decide"),
        "A pod is rewritten in one direction",
    ),
    (
        *("controller/loop.py", "controller.keepers.activity"),
        "Only the controller's program knows its keepers",
    ),
    (
        *("controller/keepers/activity/pages.py", "controller.keepers.profiles.figures"),
        "The controller's keepers do not know each other",
    ),
    (
        *("kubectl_gpufence/pod_lines.py", "kubectl_gpufence.verbs.top"),
        "The plugin's core knows none of its verbs",
    ),
    (
        *("kubectl_gpufence/verbs/explain/record.py", "kubectl_gpufence.verbs.inspect"),
        "The plugin's verbs never import each other",
    ),
]


@pytest.fixture(scope="module")
def complaint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what is said of a copy of the sources in which every contract is broken."""
    folder = tmp_path_factory.mktemp("copy")
    for package in (*PACKAGES, TOOLS):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for module, imported, _ in BREACHES:
        with (folder / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {imported}\n")
    command = [LINTER, "--no-logo", "--no-cache"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert 1 == result.returncode
    return result.stdout


@pytest.mark.parametrize(("module", "imported", "contract"), BREACHES)
def test_a_forbidden_import_breaks_its_contract(
    complaint: str, module: str, imported: str, contract: str
) -> None:
    """Adding one forbidden import makes lint-imports fail, and name contract and import."""
    _, _, section = complaint.partition(f"\n{contract}\n---")
    section, *_ = re.split(r"\n[^\n]+\n-{6,}\n", section)
    importer = module_name(ROOT / module)

    assert f"{contract} BROKEN" in complaint
    assert re.search(rf"\b{re.escape(importer)} -> {re.escape(imported)}\b", section)


def test_every_contract_is_tried() -> None:
    """No contract is there of which nobody knows whether it holds anything."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = re.findall(r"importlinter\.contracts\]\]\nname = \"(.*)\"", text)

    assert set(contracts) == {contract for _, _, contract in BREACHES}
