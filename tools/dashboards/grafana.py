"""Dashboards as Grafana reads them, put together by its own typed builder."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.dashboards.panels import (
    GOOD,
    Dashboard,
    Kind,
    Panel,
    Query,
    Variable,
)

COLUMNS: Final = 24
_HEIGHTS: Final = {Kind.FIGURE: 4, Kind.TABLE: 10}
_SOURCE: Final = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
_TAG: Final = "gpufence"
_ANYTHING: Final = ".*"
_LETTERS: Final = "ABCDEFGHIJ"
_ON: Final = True

AnyPanel = stat.Panel | table.Panel | timeseries.Panel


def page(wanted: Dashboard) -> str:
    """Return a dashboard as its file holds it."""
    return json.dumps(dashboard(wanted), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def dashboard(wanted: Dashboard) -> model.Dashboard:
    made = (
        build.Dashboard(wanted.title)
        .uid(f"gpufence-{wanted.name}")
        .description(wanted.about)
        .tags([_TAG])
        .timezone("browser")
        .time("now-3h", "now")
        .refresh("30s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .variables([_source(), *map(_variable, wanted.variables)])
        .link(_others())
    )
    numbers = count(1)
    for section in wanted.sections:
        made = made.with_row(build.Row(section.title).id(next(numbers)))
        for each in section.panels:
            made = made.with_panel(_panel(each).id(next(numbers)))
    return made.build()


def _source() -> build.DatasourceVariable:
    return build.DatasourceVariable("datasource").label("data source").type("prometheus")


def _variable(wanted: Variable) -> build.QueryVariable:
    """Offer the values of a label; all of them, and none, where nothing is chosen."""
    return (
        build.QueryVariable(wanted.label)
        .label(wanted.label)
        .datasource(_SOURCE)
        .query(f"label_values({wanted.metric}, {wanted.label})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(_ON)
        .include_all(_ON)
        .all_value(_ANYTHING)
        .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _others() -> build.DashboardLink:
    return (
        build.DashboardLink("gpufence")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags([_TAG])
        .as_dropdown(_ON)
        .keep_time(_ON)
    )


def _panel(wanted: Panel) -> AnyPanel:
    if wanted.kind is Kind.FIGURE:
        made: AnyPanel = _figure(wanted)
    elif wanted.kind is Kind.TABLE:
        made = _table(wanted)
    else:
        made = _lines(wanted)
    made = (
        made.title(wanted.title)
        .description(wanted.about)
        .datasource(_SOURCE)
        .unit(wanted.unit)
        .no_value(wanted.missing)
        .height(_HEIGHTS.get(wanted.kind, 8))
        .span(wanted.width)
        .thresholds(_steps(wanted))
        .targets(list(_targets(wanted)))
    )
    return made if wanted.most is None else made.max(wanted.most)


def _steps(wanted: Panel) -> build.ThresholdsConfig:
    first = model.Threshold(value=None, color=GOOD)
    rest = [model.Threshold(value=value, color=color) for value, color in wanted.steps]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([first, *rest])


def _targets(wanted: Panel) -> Iterator[Builder[variants.Dataquery]]:
    for letter, query in zip(_LETTERS, wanted.queries, strict=False):
        asked = Dataquery().ref_id(letter).expr(query.expr).datasource(_SOURCE)
        if wanted.kind is Kind.TABLE:
            yield asked.instant().format(PromQueryFormat.TABLE)
        elif wanted.kind is Kind.FIGURE:
            yield asked.instant()
        else:
            yield asked.range().legend_format(query.legend)


def _figure(wanted: Panel) -> stat.Panel:
    return (
        stat.Panel()
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(
            common.BigValueColorMode.VALUE if wanted.steps else common.BigValueColorMode.NONE
        )
        .graph_mode(common.BigValueGraphMode.NONE)
    )


def _lines(wanted: Panel) -> timeseries.Panel:
    shown = (
        timeseries.Panel()
        .min(0)
        .line_width(1)
        .fill_opacity(30 if wanted.kind is Kind.STACK else 0)
        .show_points(common.VisibilityMode.NEVER)
        .legend(
            VizLegendOptions()
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
            .show_legend(_ON)
        )
        .tooltip(
            VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
    )
    if wanted.kind is Kind.STACK:
        return shown.stacking(StackingConfig().mode(common.StackingMode.NORMAL))
    if wanted.steps:
        dashed = GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED)
        return shown.thresholds_style(dashed)
    return shown


def _table(wanted: Panel) -> table.Panel:
    """Put the answers of all queries side by side, each under its name and in its unit."""
    columns = {
        f"Value #{letter}": query.legend
        for letter, query in zip(_LETTERS, wanted.queries, strict=False)
    }
    order = {name: place for place, name in enumerate((*wanted.rows, *columns))}
    named = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": columns}
    made = (
        table.Panel()
        .show_header(_ON)
        .with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(model.DataTransformerConfig(id_val="organize", options=named))
    )
    for query in wanted.queries:
        made = made.override_by_name(query.legend, _column(query))
    return made


def _column(query: Query) -> list[model.DynamicConfigValue]:
    return [model.DynamicConfigValue(id_val="unit", value=query.unit)]
