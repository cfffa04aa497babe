"""Who may import whom, and that each idea stands once."""

import ast
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tree import (
    PACKAGES,
    TOOLS,
    files_of,
    files_of_tests,
    imported_by,
    module_name,
    nodes_of,
    product_files,
    shown,
)
from tools import ROOT

LEAST_MEDIAN = 100
"""The median module of a package has no fewer lines; service is a few small things for all."""

SMALL = 40
SMALL_BUT_APART = {
    "simulator.cluster.init": "entry point: the first process of a machine",
    "simulator.node.hook": "entry point: a program of its own, run as a file",
}
"""Modules of fewer lines of code with one importer or none, and why they are not part of it."""


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "service"])
def test_the_typical_module_is_worth_opening(package: str) -> None:
    """Half of a package's modules at least are as long as a subject is; a dialect may be short."""
    files = [path for path in files_of(package) if path.parent.name != "dialects"]
    sizes = [len(text.splitlines()) for text in map(_text, files) if text]

    assert LEAST_MEDIAN <= statistics.median(sizes)


def test_what_is_small_is_read_by_several() -> None:
    """A module of a few lines that only one other imports is part of that one, or says why not."""
    readers = _readers()
    small = {
        name
        for path in product_files()
        if not path.name.startswith("__")
        and len(readers[name := module_name(path)]) <= 1
        and _lines_of_code(path) < SMALL
    }

    assert SMALL_BUT_APART.keys() == small


def test_a_class_name_means_one_thing() -> None:
    """Whoever searches for a class of the product finds one."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in product_files():
        for node in nodes_of(path):
            if path.is_relative_to(ROOT / "simulator"):
                continue
            if isinstance(node, ast.ClassDef):
                places[node.name].append(shown(path))
    several = {name: files for name, files in places.items() if len(files) > 1}

    assert {} == several


def _readers() -> dict[str, set[str]]:
    """Return which modules of the product import each one."""
    modules = {module_name(path) for path in product_files()}
    readers: dict[str, set[str]] = defaultdict(set)
    for path in product_files():
        for node in nodes_of(path):
            for name in _imported(node):
                if name in modules:
                    readers[name].add(module_name(path))
    return readers


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield what a statement may import; `from a import b` may mean a module `a.b`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _lines_of_code(path: Path) -> int:
    """Count the lines that are neither blank nor comment nor docstring."""
    texts = {
        line
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(_text(path).splitlines(), start=1)
    return sum(
        number not in texts and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in lines
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


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
        *("controller/cluster/projections.py", "controller.cluster.owners"),
        "The controller's view of the cluster is wired in one direction",
    ),
    ("webhook/policy.py", "webhook.rewrite", "The webhook's parts know those below them"),
    (
        *("webhook/program.py", "webhook.command"),
        "Only the webhook's command line knows the command without a cluster",
    ),
    (
        *("webhook/server.py", "webhook.checks.quota"),
        "Only the webhook's program knows what pods have to pass besides",
    ),
    (
        *("agent/cluster/node_cards.py", "agent.cluster.cluster"),
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
        *("controller/keepers/activity/busyness.py", "controller.keepers.profiles.figures"),
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


SHARED = "support"


def test_a_test_imports_its_own_kind_and_what_is_shared() -> None:
    """A kind of tests can be read, moved and deleted without looking at the others."""
    foreign = [
        f"{shown(path)} imports {name}"
        for path in files_of_tests()
        for node in nodes_of(path)
        for name in imported_by(node)
        if name.startswith("tests.")
        and name.split(".")[1] not in {SHARED, path.relative_to(ROOT / "tests").parts[0]}
    ]

    assert [] == foreign


THREADS = {
    "agent.loop.worker": "several at once, as many as there are acts",
    "kube.repeating": "the one for all",
    "kubectl_gpufence.verbs.dashboard.server": "serves people on this machine",
    "service.status_server": "serves probes, Prometheus and the plugin",
}
"""Modules of the programs that make a thread by hand, and why."""

STORES = {
    "kube.informers.reflector.Handler",
    "kube.informers.reflector.Store",
    "simulator.node.pods.Inbox",
}
"""What takes whole collections and their changes: the protocol, the store, the
simulated kubelet's queue."""


def test_every_thread_that_is_made_by_hand_is_listed() -> None:
    """A new one belongs on `Repeating` or `Background`, or says why not."""
    made = {
        module_name(path)
        for path in product_files()
        if not path.is_relative_to(ROOT / "simulator")
        and any(_makes_a_thread(node) for node in nodes_of(path))
    }

    assert THREADS.keys() == made


def test_there_is_one_store() -> None:
    """A class that takes a whole collection and its changes is a store of its own."""
    stores = {
        f"{module_name(path)}.{node.name}"
        for path in product_files()
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and {"replace", "apply"} <= _methods_of(node)
    }

    assert stores == STORES


def _methods_of(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def _makes_a_thread(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"threading.Thread", "Thread"}
