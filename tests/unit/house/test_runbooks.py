"""Every alert leads to a page of its own, and what that page names is there."""

import argparse
import re
import shlex
from collections.abc import Callable

import pytest

from agent import __main__ as agent
from agent.program import SETTINGS as AGENT_SETTINGS
from controller.program import SETTINGS as CONTROLLER_SETTINGS
from gpufence import names
from gpufence.settings import rows
from kubectl_gpufence import verbs as plugin
from tests.support.manifests import BASE, COMPONENTS, components, objects
from tests.support.metric_names import metric_names, metrics_in
from tests.support.runbooks import commands, every_command, exists, runbooks
from tools.runbooks import RULES, address, with_addresses
from webhook import __main__ as webhook

PAGES = runbooks()
TEXT = RULES.read_text(encoding="utf-8")
PARTS = ("Means.", "Harms.", "Find out.", "Do.")
OF_NODES = {"nvidia-smi", "dmesg", "ps", "cat"}
PROGRAMS: dict[str, Callable[[list[str]], argparse.Namespace]] = {
    "kubectl gpufence": plugin.parse,
    "gpufence-agent": agent._parser().parse_args,
    "gpufence-webhook": webhook.parser().parse_args,
}
MADE_THERE = {"gpufence-certs-now"}


def calls() -> list[str]:
    """Return each call of a program of ours, inside of containers, too."""
    inner = {line.rpartition(" -- ")[2] for line in every_command()}
    return sorted(line for line in inner if line.startswith(tuple(PROGRAMS)))


def test_every_alert_has_its_page() -> None:
    """There is one page for each alert, and no other."""
    assert sorted(re.findall(r"- alert: (\w+)", TEXT)) == sorted(PAGES)


def test_every_alert_leads_to_its_page() -> None:
    """The address in each alert is as `make dashboards` writes it."""
    assert with_addresses(TEXT) == TEXT
    assert [address(name) for name in re.findall(r"- alert: (\w+)", TEXT)] == re.findall(
        r"runbook_url: (\S+)", TEXT
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_same_parts_as_all(name: str) -> None:
    """Whoever is woken finds meaning, harm, commands and remedy in the same places."""
    page = PAGES[name]

    assert page.startswith(f"# {name}\n")
    assert list(PARTS) == re.findall(r"^\*\*([A-Z][a-z ]+\.)\*\*", page, re.MULTILINE)
    assert list(commands(page))


@pytest.mark.parametrize("line", calls())
def test_a_call_of_ours_is_understood(line: str) -> None:
    """The program takes the call as it is written."""
    (program,) = (name for name in PROGRAMS if line.startswith(f"{name} "))

    assert vars(PROGRAMS[program](shlex.split(line.removeprefix(program))))


def test_nothing_else_is_called() -> None:
    """Everything else is kubectl, which tests/integration/docs asks, or a tool of the node."""
    ours = {name.split()[0] for name in PROGRAMS}

    assert set() == {line.split()[0] for line in every_command()} - ours - OF_NODES


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_names_exists(name: str) -> None:
    """Links, metrics, settings, annotations, Events and objects that a page speaks of are there."""
    page = PAGES[name]
    known = {value for value in vars(names).values() if isinstance(value, str)}
    settings = {
        variable
        for each in (AGENT_SETTINGS, CONTROLLER_SETTINGS)
        for row in rows(each)
        for variable in row.variables
    }
    folders = [BASE, *(COMPONENTS / each for each in components())]
    ours = {item["metadata"]["name"] for folder in folders for item in objects(folder)}
    objects_named = set(re.findall(r"\b(?<![/.])gpufence-[a-z-]+", page))

    assert [] == [link for link in re.findall(r"\]\(([^)]+)\)", page) if not exists(link)]
    assert set() == metrics_in(page) - metric_names()
    assert set() == set(re.findall(r"\bGPUFENCE_[A-Z_]+", page)) - settings
    assert set() == set(re.findall(r"\bgpufence\.io/[a-z-]+", page)) - known
    assert set() == set(re.findall(r"\b(?:GPU(?:Memory|Idle)|NVML)[A-Z]\w+", page)) - known
    assert set() == objects_named - ours - MADE_THERE - PROGRAMS.keys()
