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
from webhook.engines.catalog import BY_NAME
from webhook.frameworks.figures import Base
from webhook.frameworks.table import TABLE, FrameworkRow

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


def driver_bases() -> str:
    """Write of what each reader takes its value where the driver holds its container."""
    found = {f"`{row.env}`": row.base for row in TABLE if isinstance(row, FrameworkRow)}
    for engine in BY_NAME.values():
        rows = [(row.env, row) for row in engine.rows]
        if engine.lever is not None:
            rows.insert(0, (engine.lever.shown, engine.lever.row))
        said = {f"`{shown}` ({engine.name})": row for shown, row in rows}
        found |= {shown: row.base for shown, row in said.items() if isinstance(row, FrameworkRow)}
    rows_of_base = [
        f"| `{base}` | {', '.join(shown for shown, its in found.items() if its is base)} |"
        for base in Base
    ]
    return "\n".join(["| base | read by |", "|---|---|", *rows_of_base])


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
