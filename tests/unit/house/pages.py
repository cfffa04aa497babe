"""
The pages with tables that are written from the code: settings, each text of which stands once.

A table stands between two comments, of which the first names the dataclasses it has the rows of.
"""

from __future__ import annotations

import re
from importlib import import_module

from gpufence.settings import markdown_table
from tests.support.sources import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
_TABLE = re.compile(
    r"(?P<begin><!-- table of (?P<names>[^>]*) -->\n).*?(?P<end><!-- end of table -->)", re.DOTALL
)


def with_tables(page: str) -> str:
    """
    Return the page with each of its tables as the code has it now.
    """
    return _TABLE.sub(
        lambda match: f"{match['begin']}{_rows(match['names'])}\n{match['end']}", page
    )


def _rows(listed: str) -> str:
    tables = [markdown_table(_settings(name)) for name in listed.split(", ")]
    heads, *bodies = (table.splitlines() for table in tables)
    return "\n".join(heads + [row for body in bodies for row in body[2:]])


def _settings(name: str) -> type:
    module, _, attribute = name.partition(":")
    settings: type = getattr(import_module(module), attribute)
    return settings
