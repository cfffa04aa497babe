"""
`report -o html`: what each model needs and took, day by day, as one page for a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.need import merged
from kubectl_gpufence.recommend.read import FROM_REPORT, read_needs, remembered
from kubectl_gpufence.report.page import ModelDays, page

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output


def show(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Write the page to standard output; notes are in it, and aside as well.
    """
    needs = read_needs(reader, call.namespace)
    nodes = () if needs.source == FROM_REPORT else remembered(reader)[0]
    days = {owner.key: owner.days for owner in merged(nodes)}
    models = [ModelDays(item, days.get(item.key, ())) for item in needs.items]
    where = f"namespace {call.namespace}" if call.namespace else "all namespaces"
    output.lines(page(models, where, needs.notes))
    output.notes(needs.notes)
    return 0
