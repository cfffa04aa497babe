"""The dashboards in deploy/dashboards, written from one list of panels."""

from pathlib import Path

from tests.support.sources import ROOT
from tests.unit.house.dashboards.cards import CARDS
from tests.unit.house.dashboards.controller import CONTROLLER
from tests.unit.house.dashboards.grafana import page
from tests.unit.house.dashboards.health import HEALTH
from tests.unit.house.dashboards.tenants import TENANTS

FOLDER = ROOT / "deploy" / "dashboards"
DASHBOARDS = (CARDS, TENANTS, HEALTH, CONTROLLER)


def pages() -> dict[Path, str]:
    """Return what each file holds."""
    return {FOLDER / f"gpufence-{each.name}.json": page(each) for each in DASHBOARDS}
