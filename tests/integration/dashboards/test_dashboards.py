"""What dashboards and alerts ask for is there, when a real Prometheus scrapes the programs."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from simulator.controlplane import ControlPlane
from tests.integration.dashboards.site import ScrapedSite, running
from tests.support.manifests import COMPONENTS, DEPLOY, found
from tests.support.objects import gpu_pod
from tests.support.observing import eventually
from tests.support.prometheus import Series

PATIENCE_SECONDS = 30.0
WINDOW = "10s"  # several scrapes, as Grafana's own variable promises
LABEL = re.compile(r"{{\s*(\w+)\s*}}")
METRIC = re.compile(r"\b(gpufence_\w+)(?:{([^}]*)})?")
VARIABLE = re.compile(r"label_values\((\w+), (\w+)\)")
FILES = sorted((DEPLOY / "dashboards").glob("*.json"))

pytestmark = pytest.mark.needs("prometheus")


class Asked(NamedTuple):
    """A query, and the labels that name its series or, in a table, its rows."""

    expr: str
    labels: frozenset[str]
    exact: bool

    def is_answered(self, series: list[Series]) -> bool:
        return bool(series) and all(map(self._names, series))

    def _names(self, series: Series) -> bool:
        if self.exact:
            return self.labels >= series.labels.keys()
        return self.labels <= series.labels.keys()


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in FILES]


def panels() -> Iterator[Any]:
    for page in dashboards():
        name = page["uid"].removeprefix("gpufence-")
        for panel in page["panels"]:
            if panel["type"] != "row":
                yield pytest.param(panel, id=f"{name} {panel['id']}: {panel['title']}")


def asked(panel: dict[str, Any]) -> list[Asked]:
    rows = [
        name
        for item in panel["transformations"]
        for name in item["options"].get("indexByName", ())
        if not name.startswith("Value #")
    ]
    return [
        Asked(
            filled(target["expr"]),
            frozenset(rows or LABEL.findall(target.get("legendFormat", ""))),
            exact=bool(rows),
        )
        for target in panel["targets"]
    ]


def filled(expr: str) -> str:
    """Put in what Grafana would where everything is chosen."""
    for name, value in (("node", ".*"), ("namespace", ".*"), ("__rate_interval", WINDOW)):
        expr = expr.replace(f"${name}", value)
    assert "$" not in expr, expr
    return expr


@pytest.fixture(scope="module")
def site(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ScrapedSite]:
    with running(control_plane, tmp_path_factory.mktemp("site")) as ready:
        yield ready


@pytest.mark.parametrize("panel", list(panels()))
def test_every_query_of_a_panel_is_answered(site: ScrapedSite, panel: dict[str, Any]) -> None:
    """Each query of a panel has series with the labels that name them."""
    for query in asked(panel):
        answered = eventually(partial(is_answered, site, query), PATIENCE_SECONDS)

        assert answered, (query, site.prometheus.query(query.expr))


@pytest.mark.parametrize("page", dashboards(), ids=lambda page: page["uid"])
def test_every_choice_has_values(site: ScrapedSite, page: dict[str, Any]) -> None:
    """What can be chosen at the top of a dashboard is a label of a metric."""
    choices = [item["query"] for item in page["templating"]["list"] if item["type"] == "query"]
    for metric, label in (VARIABLE.fullmatch(query).groups() for query in choices):  # type: ignore[union-attr] # a query of another form fails here
        series = site.prometheus.query(f"count by ({label}) ({metric})")

        assert [True] * len(series) == [bool(item.labels.get(label)) for item in series]
        assert series


def alerts() -> Iterator[Any]:
    rules = found("PrometheusRule", "gpufence", COMPONENTS / "prometheus-operator")
    for each in rules["spec"]["groups"]:
        for rule in each["rules"]:
            if METRIC.search(rule["expr"]):
                yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.parametrize("expr", list(alerts()))
def test_alerts_ask_for_labels_that_metrics_have(site: ScrapedSite, expr: str) -> None:
    """Each metric of an alert is there, with every label by which the alert chooses or adds up."""
    sets = re.findall(r"\b(?:by|on) \(([^)]*)\)", expr)
    by = {label for labels in sets for label in labels.split(", ")}
    for metric, matchers in METRIC.findall(expr):
        labels = frozenset(by | set(re.findall(r"(\w+)[=!]", matchers)))
        query = Asked(metric, labels, exact=False)

        assert eventually(partial(is_answered, site, query), PATIENCE_SECONDS)


def is_answered(site: ScrapedSite, query: Asked) -> bool:
    """Ask once more, after another pod was made: rates want something to happen."""
    site.admit(gpu_pod("visitor"))
    return query.is_answered(site.prometheus.query(query.expr))
