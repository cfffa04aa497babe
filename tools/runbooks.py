"""Where an alert leads: each has its page in docs/runbooks, called like it."""

import re

import yaml

from tools import ROOT

WEBSITE = "https://gpufence.example"
"""
Where the project's files can be read. There is no such place yet: docs/runbooks/README.md says how
to put in one's own.
"""

FOLDER = "docs/runbooks"
RULES = ROOT / "deploy" / "components" / "prometheus-operator" / "rules.yaml"
_ALERT = re.compile(
    r"(?P<head>- alert: (?P<name>\w+)\n(?:(?! *- ).*\n)*?(?P<indent> *)annotations:\n)"
    r"(?: *runbook_url: .*\n)?"
)


def address(alert: str) -> str:
    return f"{WEBSITE}/{FOLDER}/{alert}.md"


def with_addresses(rules: str) -> str:
    """Return the rules with the address of each alert's page."""
    return _ALERT.sub(
        lambda match: f"{match['head']}{match['indent']}  runbook_url: {address(match['name'])}\n",
        rules,
    )


def alerts() -> str:
    """Return the table of all alerts, each with its page."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    rows = [
        f"| [{rule['alert']}]({rule['alert']}.md) | {rule['labels']['severity']} |"
        for group in groups
        for rule in group["rules"]
    ]
    return "\n".join(["| alert | severity |", "|---|---|", *rows])
