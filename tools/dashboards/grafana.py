"""Dashboards as Grafana reads them, put together by its own typed builder."""

import json
import re
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
    Annotation,
    Dashboard,
    Kind,
    Link,
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
_CLUSTER: Final = "cluster"
_OF_CLUSTER: Final = f'{_CLUSTER}=~"${_CLUSTER}"'
_METRIC: Final = re.compile(r"\b((?:gpufence|process)_\w+)(?:\{([^}]*)\})?")

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
        .variables([_source(), _cluster(wanted.variables[0]), *_variables(wanted)])
        .link(_others())
    )
    for annotation in wanted.annotations:
        made = made.annotation(_Shown(annotation))
    numbers = count(1)
    for section in wanted.sections:
        made = made.with_row(build.Row(section.title).id(next(numbers)))
        for each in section.panels:
            made = made.with_panel(_panel(each).id(next(numbers)))
    return made.build()


def _source() -> build.DatasourceVariable:
    return build.DatasourceVariable("datasource").label("data source").type("prometheus")


def _cluster(of: Variable) -> build.QueryVariable:
    """Offer the clusters; where metrics have no such label, all are those without."""
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    return _variable(_CLUSTER, f"label_values({of.metric}, {_CLUSTER})").current(everything)


def _variables(wanted: Dashboard) -> Iterator[build.QueryVariable]:
    """Offer the values of labels, of what is chosen before; nothing chosen is all, and none."""
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    chosen: list[str] = []
    for each in wanted.variables:
        values = in_cluster(f"{each.metric}{{{', '.join(chosen)}}}")
        query = f"label_values({values}, {each.label})"
        yield _variable(each.label, query).multi(_ON).current(everything)
        chosen.append(each.selector)


def _variable(label: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(label)
        .label(label)
        .datasource(_SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .include_all(_ON)
        .all_value(_ANYTHING)
    )


def in_cluster(expr: str) -> str:
    """Ask each metric for the cluster that is chosen."""

    def chosen(match: re.Match[str]) -> str:
        inner = f"{_OF_CLUSTER}, {match[2]}" if match[2] else _OF_CLUSTER
        return f"{match[1]}{{{inner}}}"

    return _METRIC.sub(chosen, expr)


class _Shown(Builder[model.AnnotationQuery], model.AnnotationQuery):
    """An annotation with its text, of which Grafana's own type knows nothing."""

    def __init__(self, wanted: Annotation) -> None:
        super().__init__(wanted.name, _SOURCE, icon_color="red", expr=in_cluster(wanted.expr))
        self._text = wanted.text

    def build(self) -> model.AnnotationQuery:
        return self

    def to_json(self) -> dict[str, object]:
        more = {"titleFormat": self.name, "textFormat": self._text, "step": "60s"}
        return {**super().to_json(), **more}


def _others() -> build.DashboardLink:
    return (
        build.DashboardLink("gpufence")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags([_TAG])
        .as_dropdown(_ON)
        .keep_time(_ON)
        .include_vars(_ON)
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
    if wanted.to is not None:
        made = made.data_links([_link(wanted.to, wanted.kind)])
    return made if wanted.most is None else made.max(wanted.most)


def _link(wanted: Link, kind: Kind) -> build.DashboardLink:
    """Lead to another dashboard, with what is chosen here and what the row or series is of."""
    of = "__data.fields" if kind is Kind.TABLE else "__field.labels"
    choices = [f"var-{label}=${{{of}.{label}}}" for label in wanted.labels]
    kept = ("${datasource:queryparam}", "${cluster:queryparam}", "${__url_time_range}")
    url = f"/d/{_TAG}-{wanted.dashboard}?{'&'.join((*choices, *kept))}"
    return build.DashboardLink(wanted.title).type(model.DashboardLinkType.LINK).url(url)


def _steps(wanted: Panel) -> build.ThresholdsConfig:
    first = model.Threshold(value=None, color=GOOD)
    rest = [model.Threshold(value=value, color=color) for value, color in wanted.steps]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([first, *rest])


def _targets(wanted: Panel) -> Iterator[Builder[variants.Dataquery]]:
    for letter, query in zip(_LETTERS, wanted.queries, strict=False):
        asked = Dataquery().ref_id(letter).expr(in_cluster(query.expr)).datasource(_SOURCE)
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
