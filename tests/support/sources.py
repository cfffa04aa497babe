"""The project's own Python files, and which of them are pure."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
    """
    Tell whether a module promises to be pure: all of gpufence, and who says PURE. in its docstring.
    """
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


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
