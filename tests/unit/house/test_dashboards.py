"""
The dashboards are as their list of panels says, are about metrics that exist, and can be read.
"""

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.support.manifests import kustomization
from tests.support.metric_names import metric_names, metrics_in
from tools.dashboards import DASHBOARDS, FOLDER, pages
from tools.dashboards.panels import Kind, Panel

COLUMNS = 24
MOST_BYTES = 200_000  # kubectl keeps a copy of an object in an annotation of at most 256 KiB
PANELS = [
    pytest.param(panel, id=f"{each.name}: {section.title}: {panel.title}")
    for each in DASHBOARDS
    for section in each.sections
    for panel in section.panels
]


def texts() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}


def boxes(page: dict[str, Any]) -> Iterator[tuple[range, range]]:
    """Yield the columns and lines of each panel."""
    for panel in page["panels"]:
        at = panel["gridPos"]
        yield range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])


def overlap(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)


def test_the_files_are_as_they_are_written() -> None:
    """Every dashboard is as `make dashboards` writes it, and there is no other."""
    assert {path.name: text for path, text in pages().items()} == texts()


def test_every_dashboard_is_shipped() -> None:
    """Each file is in one ConfigMap."""
    maps = kustomization(FOLDER)["configMapGenerator"]

    assert sorted(texts()) == sorted(name for each in maps for name in each["files"])


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_about_metrics_that_exist(panel: Panel) -> None:
    """No panel waits for a figure that nobody shows."""
    said = {word for query in panel.queries for word in metrics_in(query.expr)}

    assert said
    assert set() == said - metric_names()


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_explains_itself(panel: Panel) -> None:
    """A panel says what it shows, names its series unless there is one, and has units."""
    assert panel.about.endswith(".")
    assert panel.queries
    assert [] == [
        query
        for query in panel.queries
        if bool(query.legend) == (panel.kind is Kind.FIGURE)
        or bool(query.unit) != (panel.kind is Kind.TABLE)
    ]


@pytest.mark.parametrize("each", DASHBOARDS, ids=lambda each: each.name)
def test_choices_are_about_metrics_that_exist(each: Any) -> None:
    """What can be chosen comes from a metric that is shown, and is used."""
    text = texts()[f"gpufence-{each.name}.json"]

    assert [] == [item.metric for item in each.variables if item.metric not in metric_names()]
    assert [] == [item.label for item in each.variables if f"${item.label}" not in text]


@pytest.mark.parametrize("name", sorted(texts()))
def test_grafana_can_read_it(name: str) -> None:
    """Its own types take the file, and would write the same."""
    register_default_plugins()
    page = json.loads(texts()[name])
    read = Dashboard.from_json(page)

    assert page == json.loads(json.dumps(read, cls=JSONEncoder))
    assert len(texts()[name]) < MOST_BYTES


@pytest.mark.parametrize("name", sorted(texts()))
def test_panels_fill_lines_and_do_not_overlap(name: str) -> None:
    """No panel lies on another, no line has a hole, and each panel has a number of its own."""
    page = json.loads(texts()[name])
    numbers = [panel["id"] for panel in page["panels"]]
    places = list(boxes(page))

    assert len(numbers) == len(set(numbers))
    assert {COLUMNS} == {
        sum(len(columns) for columns, lines in places if line in lines)
        for line in range(max(lines.stop for _, lines in places))
    }
    assert [] == [
        pair
        for pair in combinations(places, 2)
        if overlap(pair[0][0], pair[1][0]) and overlap(pair[0][1], pair[1][1])
    ]
