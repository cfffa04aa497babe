"""
What a program asks of the API server, read off its source.

Paths are built by `kube.core` and `kube.group` alone and handed to a client's get, list, page,
post, patch and delete, or to a `Source`, which is listed and watched. Whatever does not fit that
is an error here, so that no request can slip by unseen.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gpufence import names as spelling
from tests.support.tree import shown, tree_of
from tools import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
VERBS = {"post": "create", "put": "update", "patch": "patch", "delete": "delete"}
READERS = frozenset({"get", "list", "listed", "page", "text"})
FORWARDERS = {"webhook/cluster.py": "_get", "webhook/claims.py": "ask"}
"""Functions that take `core` or a partial `group` first, and read the path of their arguments."""


@dataclass(frozen=True, order=True)
class Right:
    group: str
    resource: str
    verb: str


@dataclass(frozen=True)
class Asked:
    """A path, as far as the source tells: what is not a constant is `*`."""

    group: str
    segments: tuple[str, ...]

    @property
    def resource(self) -> tuple[str, str | None]:
        """Return the resource with its subresource, and the object's name if it has one."""
        parts = self.segments
        if parts[0] == "namespaces" and len(parts) > 2:
            parts = parts[2:]
        name = parts[1] if len(parts) > 1 else None
        return "/".join((parts[0], *parts[2:3])), name

    def right(self, method: str) -> Iterator[Right]:
        resource, name = self.resource
        if method == "Source":
            verbs = ["list", "watch"]
        elif method in READERS:
            verbs = ["list" if name is None else "get"]
        else:
            verbs = [VERBS[method]]
        for verb in verbs:
            yield Right(self.group, resource, verb)


@dataclass
class Module:
    """One file: the paths that it builds, and those that were seen to be used."""

    path: Path
    constants: dict[str, ast.expr] = field(default_factory=dict)
    makers: dict[str, ast.expr] = field(default_factory=dict)
    rights: set[Right] = field(default_factory=set)
    used: set[int] = field(default_factory=set)

    def read(self) -> set[Right]:
        tree = tree_of(self.path)
        self.constants = dict(_assigned(tree.body))
        for node in ast.walk(tree):
            returned = _returned(node) if isinstance(node, Function) else None
            if isinstance(node, Function) and returned is not None and _is_path(returned):
                self.makers[node.name] = returned
        for function in [n for n in ast.walk(tree) if isinstance(n, Function)]:
            names = self.constants | dict(_assigned(ast.walk(function)))
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    self._call(node, names)
        built = {id(node) for node in ast.walk(tree) if _is_path(node)}
        unseen = [node for node in ast.walk(tree) if id(node) in built - self.used]
        lines = sorted(getattr(node, "lineno", 0) for node in unseen)
        if lines:
            raise AssertionError(f"{shown(self.path)}: what becomes of the paths of lines {lines}?")
        return self.rights

    def _call(self, node: ast.Call, names: dict[str, ast.expr]) -> None:
        method = _called(node)
        if method == FORWARDERS.get(shown(self.path)):
            maker, *segments = node.args
            made_of = self.constants.get(maker.id) if isinstance(maker, ast.Name) else None
            version = _segment(made_of.args[1]) if isinstance(made_of, ast.Call) else ""
            named = tuple(_segment(each) for each in segments)
            self._add(Asked(version.rpartition("/")[0], named), "get")
            return
        path = next((k.value for k in node.keywords if k.arg == "path"), None)
        arguments = iter(node.args)
        if method == "partial" and isinstance(later := next(arguments, None), ast.Attribute):
            method = later.attr  # partial(client.get, path): called when it is needed
        given = path if method == "Source" else next(arguments, None)
        method = "Source" if method == "_source" else method
        if given is None or method not in {*READERS, *VERBS, "Source", "text"}:
            return
        for asked in self._asked(given, names):
            self._add(asked, method)

    def _add(self, asked: Asked, method: str) -> None:
        self.rights |= set(asked.right(method))

    def _asked(self, node: ast.expr, names: dict[str, ast.expr]) -> Iterator[Asked]:
        if isinstance(node, ast.IfExp):
            yield from self._asked(node.body, names)
            yield from self._asked(node.orelse, names)
        elif isinstance(node, ast.Name) and node.id in names:
            yield from self._asked(names[node.id], {**names, node.id: ast.Constant(None)})
        elif isinstance(node, ast.Call) and _called(node) in self.makers:
            yield from self._asked(self.makers[_called(node)], names)
        elif isinstance(node, ast.JoinedStr):
            yield from self._joined(node, names)
        elif isinstance(node, ast.Call) and _is_path(node):
            self.used.add(id(node))
            if not any(isinstance(each, ast.Starred) for each in node.args):
                yield _built(node, self.constants)
            elif shown(self.path) not in FORWARDERS:
                raise AssertionError(f"{shown(self.path)}:{node.lineno}: unknown segments")

    def _joined(self, node: ast.JoinedStr, names: dict[str, ast.expr]) -> Iterator[Asked]:
        first, *rest = node.values
        tail = "".join(str(each.value) for each in rest if isinstance(each, ast.Constant))
        if isinstance(first, ast.FormattedValue):
            for asked in self._asked(first.value, names):
                more = tuple(part for part in tail.split("/") if part)
                yield Asked(asked.group, (*asked.segments, *more))


@cache
def rights_of(package: str, *left_out: str) -> frozenset[Right]:
    """Return all that the modules of a package ask for, but for those left out."""
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if path.name not in left_out]
    return frozenset(right for path in paths for right in Module(path).read())


def _is_path(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Name) and node.func.id in {"core", "group"}
    )


def _built(node: ast.Call, constants: dict[str, ast.expr]) -> Asked:
    segments = tuple(_segment(each, constants) for each in node.args)
    if isinstance(node.func, ast.Name) and node.func.id == "group":
        return Asked(segments[0].rpartition("/")[0], segments[1:])
    return Asked("", segments)


def _segment(node: ast.expr, constants: dict[str, ast.expr] | None = None) -> str:
    if isinstance(node, ast.Name) and node.id in (constants or {}):
        return _segment((constants or {})[node.id])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute) and _is_names(node.value):
        return str(getattr(spelling, node.attr, "*"))
    return "*"


def _is_names(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "names"


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _returned(node: Function) -> ast.expr | None:
    last = node.body[-1]
    return last.value if isinstance(last, ast.Return) else None


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
