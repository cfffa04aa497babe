"""The dashboards in deploy/dashboards, written from one list of panels."""

from pathlib import Path

from tools import ROOT
from tools.dashboards.cards import CARDS
from tools.dashboards.controller import CONTROLLER
from tools.dashboards.grafana import page
from tools.dashboards.health import HEALTH
from tools.dashboards.tenants import TENANTS

FOLDER = ROOT / "deploy" / "dashboards"
DASHBOARDS = (CARDS, TENANTS, HEALTH, CONTROLLER)


def pages() -> dict[Path, str]:
    """Return what each file holds."""
    return {FOLDER / f"gpufence-{each.name}.json": page(each) for each in DASHBOARDS}
