"""
The pages with tables that are written from the code: settings, dialects, alerts and what was
measured with frameworks, each text of which stands once.

A table stands between two comments, of which the first names what it has the rows of, or what
writes it.
"""

import re
from importlib import import_module
from types import FunctionType

from gpufence.dialects import SPECS, DialectSpec
from gpufence.names import DRA_DRIVER, DRA_MEMORY
from gpufence.settings import markdown_table
from tools import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "docs" / "runbooks" / "README.md",
]
_CAPPED = "; its own library caps, gpufence measures and checks that it bites"
_TABLE = re.compile(
    r"(?P<begin><!-- table of (?P<names>[^>]*) -->\n).*?(?P<end><!-- end of table -->)", re.DOTALL
)


def with_tables(page: str) -> str:
    """Return the page with each of its tables as the code has it now."""
    return _TABLE.sub(
        lambda match: f"{match['begin']}{_rows(match['names'])}\n{match['end']}", page
    )


def _rows(listed: str) -> str:
    tables = [_table(name) for name in listed.split(", ")]
    heads, *bodies = (table.splitlines() for table in tables)
    return "\n".join(heads + [row for body in bodies for row in body[2:]])


def _table(name: str) -> str:
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, FunctionType):
        return str(found())
    return _dialects(found) if found is SPECS else markdown_table(found)


def _dialects(specs: tuple[DialectSpec, ...]) -> str:
    rows = [
        f"| {spec.system} | {asked_with} | {spec.unit}{_CAPPED if spec.library_caps else ''} |"
        for spec in specs
        if (asked_with := _asked_with(spec))
    ]
    return "\n".join(["| system | asked for with | unit |", "|---|---|---|", *rows])


def _asked_with(spec: DialectSpec) -> str:
    prefixes = [f"{spec.prefix}*"] if spec.prefix else []
    if spec.by_claims:
        return f"resource claims with capacity `{DRA_MEMORY}`, or whole devices of `{DRA_DRIVER}`"
    beginning, ends = spec.container_keys
    of_containers = [f"{beginning}<name>{end}" for end in ends]
    known = (*spec.resources, *prefixes, *spec.annotation_keys, *of_containers)
    quoted = [f"`{name}`" for name in known]
    return f"{'annotations ' if spec.annotation_keys else ''}{', '.join(quoted)}"
