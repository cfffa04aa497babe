"""
Mutants of a module: its text with one small fault put in, which some test should notice.

Left out is what no test could notice: docstrings, annotations, decorators, f-strings.
"""

from __future__ import annotations

import ast
import copy
import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_OTHER: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_UNTESTED: Final = {"__slots__", "__all__"}


class Mutant(NamedTuple):
    """A module's bytes from `start` to `end` replaced."""

    path: str
    line: int
    within: str
    """The function or class, for the tests that name it."""
    start: int
    end: int
    text: str

    def put_into(self, source: str) -> str:
        whole = source.encode()
        return b"".join([whole[: self.start], self.text.encode(), whole[self.end :]]).decode()

    def diff(self, source: str) -> str:
        """Show what is changed, without the head of a unified diff."""
        before, after = source.splitlines(), self.put_into(source).splitlines()
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])


def mutants(path: str, source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found), key=lambda each: (each.start, each.end, each.text))


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str) -> None:
        self._path = path
        lines = source.encode().splitlines(keepends=True)
        self._begins = [sum(map(len, lines[:number])) for number in range(len(lines))]
        self._source = source.encode()
        self._within: list[str] = []
        self._in_function = False
        self.found: list[Mutant] = []

    def _replace(self, node: ast.expr | ast.stmt, texts: Iterable[str]) -> None:
        start = self._begins[node.lineno - 1] + node.col_offset
        end = self._begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        within = self._within[-1] if self._within else ""
        for text in texts:
            if text.strip("()").encode() != self._source[start:end].strip(b"()"):
                self.found.append(Mutant(self._path, node.lineno, within, start, end, text))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if all(_is_empty(statement) for statement in node.body):
            return
        outside, self._in_function = self._in_function, True
        self._go_through(node.name, [node.args, *node.body])
        self._in_function = outside

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._go_through(node.name, node.body)

    def _go_through(self, name: str, nodes: Iterable[ast.AST]) -> None:
        self._within.append(name)
        for node in nodes:
            self.visit(node)
        self._within.pop()

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *filter(None, node.kw_defaults)]:
            self.visit(default)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(ast.unparse(target) in _UNTESTED for target in node.targets):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, ["pass"])
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, ["pass"])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not _is_empty(node):
            self._replace(node, ["pass"])
            self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, ["pass"])

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, ["pass"])

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._replace(node, () if _is_falsy(node.value) else ["return None"])
            self.visit(node.value)

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._turn(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.visit_If(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit_If(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._turn(condition)
        self.generic_visit(node)

    def _turn(self, condition: ast.expr) -> None:
        if not isinstance(condition, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
            self._replace(condition, [f"(not {ast.unparse(condition)})"])

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                changed = copy.copy(node)
                changed.ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._replace(node, [f"({ast.unparse(changed)})"])
        for each in [node.left, *node.comparators]:
            if not (isinstance(each, ast.Constant) and each.value is None):
                self.visit(each)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        self._replace(node, [f"({ast.unparse(other)})"])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = ARITHMETIC.get(type(node.op))
        if other is not None and (self._in_function or not isinstance(node.op, ast.BitOr)):
            changed = ast.BinOp(node.left, other(), node.right)
            self._replace(node, [f"({ast.unparse(changed)})"])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._replace(node, [f"({ast.unparse(node.operand)})"])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._in_function:  # elsewhere it is a type
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        if name in _OTHER:
            self._replace(node.func, [_OTHER[name]])
        if name == "isinstance":  # the second argument is a type
            self.visit(node.args[0])
        elif name != "cast":
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        self._replace(node, _other_constants(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Python 3.11 does not know where in the text the parts of an f-string are."""


def _other_constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int | float):
        yield from (str(value + 1), f"({value - 1})")
    elif value is None:
        yield "1"


def _is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_falsy(value: ast.expr) -> bool:
    """Tell what, as an answer, is often as good as None."""
    try:
        return not ast.literal_eval(value)
    except ValueError:
        return False
