"""What tests read of the tree: its Python files, manifests, runbooks and shared vectors."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpufence.candidates import CandidateCard
from gpufence.cards import read_capability
from gpufence.dialects import Units
from gpufence.quantity import UNIT_BYTES, read_bytes
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, objects

PACKAGES = (
    *("gpufence", "kube", "service"),
    *("webhook", "agent", "certs", "controller", "kubectl_gpufence", "simulator"),
)
TOOLS = "tools"
"""What writes files of the tree; neither shipped nor a test."""


def product_files() -> list[Path]:
    return [path for package in PACKAGES for path in files_of(package)]


def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def files_of_tests() -> list[Path]:
    return files_of("tests")


def files_of_tools() -> list[Path]:
    return files_of(TOOLS)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def is_pure(module: str) -> bool:
    """Tell whether a module promises to be pure: all of gpufence, and where the text says PURE."""
    path = ROOT.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            promised = (ast.get_docstring(tree_of(file)) or "").startswith("PURE.")
            return promised or module.split(".", maxsplit=1)[0] == "gpufence"
    return False


def pure_files() -> list[Path]:
    return [path for path in [*product_files(), *files_of_tools()] if is_pure(module_name(path))]


def imported_by(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all of a file's tree: a walk takes twice the time of reading it."""
    return tuple(ast.walk(tree_of(path)))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


AGENT_CARDS = "gpufence-agent-cards"


def found(kind: str, name: str, folder: Path = BASE) -> dict[str, Any]:
    """Return the one object of that kind and name."""
    (only,) = [
        item for item in objects(folder) if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return only


def pod_spec(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]
    spec = spec.get("jobTemplate", {"spec": spec})["spec"]
    return dict(spec["template"]["spec"])


def plain_policies() -> list[dict[str, Any]]:
    """Return what bounds an agent with rights of its own: its component's, and about its Node."""
    about_node = [
        item for item in objects(BASE / "agent") if item["metadata"]["name"] == AGENT_CARDS
    ]
    return [*about_node, *objects(COMPONENTS / "kubernetes-1.30")]


def plain_rights(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an agent's objects with the rights and policies of Kubernetes before 1.36."""
    folder = COMPONENTS / "kubernetes-1.30"
    (change,) = yaml.safe_load((folder / "rules.yaml").read_text(encoding="utf-8"))
    for item in items:
        if item["kind"] == "ClusterRole":
            item["rules"] = change["value"]
    return [*items, *plain_policies()]


def moved(item: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Put an object into another namespace, as kustomize does."""
    if not item["kind"].startswith("Cluster"):
        item["metadata"]["namespace"] = namespace
    for subject in item.get("subjects", []):
        subject["namespace"] = namespace
    return item


FOLDER = ROOT / "docs" / "runbooks"
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_QUOTED = re.compile(r"`((?:kubectl|gpufence-\w+) [^`]+)`")
_ELSEWHERE = re.compile(r" (?:\||>) .*")
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def runbooks() -> dict[str, str]:
    """Return the page of each alert."""
    pages = (path for path in FOLDER.glob("*.md") if path.stem != "README")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(pages)}


def commands(page: str) -> Iterator[str]:
    """Yield each command up to its first pipe, with a name in place of POD, NODE and TEAM."""
    lines = [line for block in _BLOCK.findall(page) for line in block.splitlines()]
    for line in (*lines, *_QUOTED.findall(page)):
        yield _PLACEHOLDER.sub("one", _ELSEWHERE.sub("", line))


def every_command() -> list[str]:
    return sorted({line for page in runbooks().values() for line in commands(page)})


def exists(link: str) -> bool:
    """Return whether a link from a runbook leads to a file."""
    return (FOLDER / Path(link.partition("#")[0])).is_file()


_FILE = Path(__file__).parents[1] / "data" / "pods.json"


@dataclass(frozen=True)
class Vector:
    name: str
    pod: dict[str, Any]
    namespace: dict[str, str]
    card: CandidateCard
    expected: dict[str, Any]


def vectors() -> list[Vector]:
    return [_vector(row) for row in json.loads(_FILE.read_text(encoding="utf-8"))]


def _vector(row: dict[str, Any]) -> Vector:
    place = row["place"]
    units = place.get("units", {})
    return Vector(
        name=row["name"],
        pod=row["pod"],
        namespace=row.get("namespace", {}),
        card=CandidateCard(
            units=Units(
                gpushare_bytes=UNIT_BYTES.get(units.get("gpushare", "GiB")),
                volcano_factor=units.get("volcano", 1),
                clients=units.get("clients"),
            ),
            memory_bytes=read_bytes(place["card"], "card") if "card" in place else None,
            compute_capability=read_capability(place.get("cc", "")),
        ),
        expected=row["expected"],
    )


def is_account(name: str) -> str:
    """Return how policies ask for an account of ours, whichever namespace we are in."""
    user = "request.userInfo.username"
    return f"{user}.startsWith('system:serviceaccount:') && {user}.endsWith(':{name}')"
