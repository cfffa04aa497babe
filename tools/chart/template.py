"""PURE. A node as the text of a Helm template."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import yaml

from tools.chart.merge import ABSENT, Choice, Flags, Named, Present

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP = 2


@dataclass(frozen=True, slots=True)
class Code:
    """An entry that Helm fills in: its lines, which begin where the entry would."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """An entry that is as a value has it, or left out by an empty one; by null it stays."""

    value: str
    node: Any


@dataclass(frozen=True, slots=True)
class Unless:
    """An entry that a value replaces."""

    condition: str
    node: Any


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints nodes; `conditions` say how Helm asks for each component."""

    conditions: Mapping[str, str]

    def document(self, node: Any, condition: str = "") -> list[str]:
        """Return an object's lines; it may be there under conditions."""
        if isinstance(node, Choice):
            lines = self._choice(node, lambda value: ["---", *self.mapping(value, 0)])
        else:
            lines = ["---", *self.mapping(node, 0)]
        return [f"{{{{- if {condition} }}}}", *lines, "{{- end }}"] if condition else lines

    def mapping(self, node: dict[str, Any], indent: int) -> list[str]:
        return [line for key, item in node.items() for line in self._entry(key, item, indent)]

    def _entry(self, key: str, node: Any, indent: int) -> list[str]:
        if isinstance(node, Choice):
            return self._choice(node, lambda value: self._entry(key, value, indent))
        if isinstance(node, Present):
            lines = self._entry(key, node.node, indent)
            return [f"{{{{- if {self._any(node.reasons)} }}}}", *lines, "{{- end }}"]
        if isinstance(node, Given):
            return self._given(key, node, indent)
        if isinstance(node, Code):
            return [line if line.startswith("{{-") else " " * indent + line for line in node.lines]
        if isinstance(node, Named) and node:
            return [f"{' ' * indent}{key}:", *self._items(node, indent)]
        if isinstance(node, dict) and node:
            return [f"{' ' * indent}{key}:", *self.mapping(node, indent + _STEP)]
        text = yaml.dump({key: node}, Dumper=_Dumper, width=2**20, sort_keys=False)
        lines = text.replace("{{", '{{ "{{" }}').splitlines()
        return [" " * indent + line if line else "" for line in lines]

    def _given(self, key: str, node: Given, indent: int) -> list[str]:
        said = f"{' ' * indent}{key}: {{{{ toJson {node.value} }}}}"
        if node.node is ABSENT:
            return [f"{{{{- if {node.value} }}}}", said, "{{- end }}"]
        kept = self._entry(key, node.node, indent)
        first = f'{{{{- if kindIs "invalid" {node.value} }}}}'
        return [first, *kept, f"{{{{- else if {node.value} }}}}", said, "{{- end }}"]

    def _items(self, node: Named, indent: int) -> list[str]:
        lines: list[str] = []
        for name, item in node.items():
            lines += (
                self._entry(name, item, indent)
                if isinstance(item, Code)
                else self._item(item, indent)
            )
        return lines

    def _item(self, item: Any, indent: int) -> list[str]:
        if isinstance(item, Choice):
            return self._choice(item, lambda value: self._item(value, indent))
        if isinstance(item, Unless):
            lines = self._item(item.node, indent)
            return [f"{{{{- if not ({item.condition}) }}}}", *lines, "{{- end }}"]
        named = {"name": item["name"], **item}
        first, *rest = self.mapping(named, indent + _STEP)
        return [f"{' ' * indent}- {first.lstrip()}", *rest]

    def _choice(self, node: Choice, lines: Any) -> list[str]:
        """Print who comes first, the last that was told; equal ones together."""
        found = [
            (value, self._any([flags for flags, _ in others]))
            for value, others in _alike(list(reversed(node.others)))
        ]
        if all(value is ABSENT for value, _ in found):
            (_, condition), *_ = found
            return [f"{{{{- if not {_one(condition)} }}}}", *lines(node.default), "{{- end }}"]
        word, told = "if", []
        for value, condition in found:
            told += [f"{{{{- {word} {condition} }}}}"]
            told += [] if value is ABSENT else lines(value)
            word = "else if"
        if node.default is not ABSENT:
            told += ["{{- else }}", *lines(node.default)]
        return [*told, "{{- end }}"]

    def _any(self, reasons: Any) -> str:
        conditions = sorted({self._all(flags) for flags in reasons})
        return conditions[0] if len(conditions) == 1 else f"or {' '.join(map(_one, conditions))}"

    def _all(self, flags: Flags) -> str:
        conditions = [_one(self.conditions.get(flag, flag)) for flag in sorted(flags)]
        return conditions[0] if len(conditions) == 1 else f"and {' '.join(conditions)}"


def _one(condition: str) -> str:
    return f"({condition})" if " " in condition and not condition.startswith("(") else condition


def _alike(others: list[tuple[Flags, Any]]) -> list[tuple[Any, list[tuple[Flags, Any]]]]:
    groups = [list(group) for _, group in groupby(others, key=lambda one: repr(one[1]))]
    return [(group[0][1], group) for group in groups]
