"""Who of ours may do what, as docs/isolation.md shows it and the API server is asked about."""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from gpufence import names
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, components, objects

PAGE = ROOT / "docs" / "isolation.md"
VIEWER = "gpufence-viewer"
"""People's role, which nothing binds; what it grants stands in the table under its name."""
EVERYWHERE, HERE = "everywhere", names.SYSTEM_NAMESPACE
_HEAD = ("account", "with", "where", "may")
_TABLE = re.compile(r"<!-- table of tests\.support\.rights:table -->\n(.*?)<!-- end", re.DOTALL)


class Held(NamedTuple):
    """One right of one account; `name` is empty where it is of every object."""

    account: str
    where: str
    verb: str
    resource: str
    name: str


def table() -> str:
    """Return the rights of each account that the manifests bind, one row for each place."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|---" * len(_HEAD) + "|"]
    granted: dict[tuple[str, ...], list[str]] = {}
    for *place, rule in sorted(set(_rows())):
        granted.setdefault(tuple(place), []).append(rule)
    rows = [" | ".join((*place, "; ".join(rules))) for place, rules in granted.items()]
    return "\n".join([*lines, *(f"| {row} |" for row in rows)])


def shown() -> set[Held]:
    """Read the page's table again."""
    (text,) = _TABLE.findall(PAGE.read_text(encoding="utf-8"))
    held: set[Held] = set()
    for line in text.splitlines()[2:]:
        account, _, where, rules = (cell.strip() for cell in line.strip("|").split(" | "))
        held.update(
            Held(account.strip("` "), where, verb, resource, name.strip("` |"))
            for rule in rules.split("; ")
            for verb, resource, name in _granted(rule)
        )
    return held


def _granted(rule: str) -> Iterator[tuple[str, str, str]]:
    verbs, _, what = rule.partition(" on ")
    resources, _, objects_ = what.partition(" named ")
    return product(verbs.split(", "), resources.split(", "), objects_.split(", "))


def _rows() -> Iterator[tuple[str, ...]]:
    for part in (None, *components()):
        items = objects(BASE if part is None else COMPONENTS / part)
        roles = {
            (item["kind"], item["metadata"]["name"]): item
            for item in items
            if item["kind"] in {"Role", "ClusterRole"}
        }
        for account, role in _bound(items):
            where = EVERYWHERE if role[0] == "ClusterRole" else HERE
            for rule in roles[role].get("rules") or []:
                yield (
                    f"`{account}`",
                    part or "",
                    where,
                    f"{', '.join(rule['verbs'])} on {_of(rule)}",
                )


def _bound(items: Iterable[dict[str, Any]]) -> Iterator[tuple[str, tuple[str, str]]]:
    for item in items:
        for subject in item.get("subjects", []):
            yield subject["name"], (item["roleRef"]["kind"], item["roleRef"]["name"])
        if item["metadata"]["name"] == VIEWER:
            yield VIEWER, (item["kind"], VIEWER)


def _of(rule: dict[str, Any]) -> str:
    resources = [
        f"{resource}.{group}".rstrip(".")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    named = ", ".join(f"`{name}`" for name in rule.get("resourceNames", ()))
    return ", ".join(resources) + (f" named {named}" if named else "")
