"""Pages lead where they say: glossary, tables, runbooks; and none says what is ours alone."""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import __main__ as agent
from agent.program import SETTINGS as AGENT_SETTINGS
from controller.program import SETTINGS as CONTROLLER_SETTINGS
from gpufence import names
from gpufence.event_text import Anchor
from gpufence.settings import rows
from kubectl_gpufence import verbs as plugin
from tests.support.metric_names import metric_names, metrics_in
from tests.support.tree import commands, every_command, exists, runbooks, shown
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, components, objects
from tools.pages import PAGES, with_tables
from tools.picture import PICTURE, RECORD, drawn, recorded
from tools.runbooks import RULES, address, with_addresses
from webhook import __main__ as webhook

ARCHITECTURE = ROOT / "docs" / "architecture.md"
LED = {
    "create": "When a pod is created",
    "eviction": "When a pod holds too much",
    "release": "When a GPU is claimed and not used",
    "top": "`kubectl gpufence top`",
    "renewal": "Certificates",
}
"""The walks that the page of the architecture has, and under which heading."""


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_tables_are_those_of_the_code(page: Path) -> None:
    """Every generated table is as `make docs` writes it."""
    text = page.read_text(encoding="utf-8")

    assert with_tables(text) == text


def test_conformance_is_claimed_by_metrics_that_are_there() -> None:
    """Each metric that the page of conformance names is on a page of some program."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

    assert set() == metrics_in(text) - metric_names()


@pytest.mark.parametrize("anchor", Anchor)
def test_what_events_link_to_is_on_the_page_for_users(anchor: Anchor) -> None:
    """Each part says what is seen, why, what to type, and the right number."""
    text = (ROOT / "docs" / "my-pod.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {anchor.capitalize()}\n")[2].partition("\n## ")[0]

    for words in ("What you see", "Why", "What to type", "the right number"):
        assert f"**{words}" in part.replace("**The right", "**the right")


def test_the_picture_is_made_from_a_run() -> None:
    """What the README shows first is drawn from what the demo printed, and from nothing else."""
    record = recorded(RECORD.read_text(encoding="utf-8"))

    assert drawn(record) == PICTURE.read_text(encoding="utf-8")
    assert record.looks[0].greedy < record.limit < record.looks[-1].greedy


def test_a_record_that_was_cut_is_no_record() -> None:
    """A picture is not made of half a run."""
    with pytest.raises(ValueError, match="keep a whole run in it"):
        recorded("    [###===   ]  3690 of 15360 MiB  within 0 s\n")


def test_the_tour_quotes_the_run() -> None:
    """What the tour says the demo prints stands in the record, line by line."""
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    quoted = tour.split("<!-- not run: a part of demo.txt -->\n```console\n")[1].split("```")[0]

    assert set() == set(quoted.splitlines()) - set(RECORD.read_text(encoding="utf-8").splitlines())


def test_the_first_view_is_one_screen() -> None:
    """What it is, the picture, two commands and the ladder come first, in less than sixty lines."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = lines[: lines.index("## On a real cluster")]

    assert {"docs/demo.svg", "make demo", "## The ladder"} == {
        text
        for text in ("docs/demo.svg", "make demo", "## The ladder")
        if any(text in line for line in first)
    }
    assert 60 > len(first)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page: Path) -> None:
    """Every file that a page links to is there."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (page.parent / link).exists()]


LINES = [
    line
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[1].strip())
def test_a_term_leads_to_its_place(line: str) -> None:
    """Every line has a term, its meaning, and files or folders that exist."""
    _, term, meaning, where, _ = line.split("|")
    places = re.findall(r"`([^`]+)`", where)

    assert term.strip()
    assert meaning.strip()
    assert places
    assert [] == [place for place in places if not (ROOT / place).exists()]


def test_no_term_has_two_meanings() -> None:
    """A concept has one line."""
    terms = [line.split("|")[1].strip() for line in LINES]

    assert len(terms) == len(set(terms))


RUNBOOKS = runbooks()
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
    assert sorted(re.findall(r"- alert: (\w+)", TEXT)) == sorted(RUNBOOKS)


def test_every_alert_leads_to_its_page() -> None:
    """The address in each alert is as `make dashboards` writes it."""
    assert with_addresses(TEXT) == TEXT
    assert [address(name) for name in re.findall(r"- alert: (\w+)", TEXT)] == re.findall(
        r"runbook_url: (\S+)", TEXT
    )


@pytest.mark.parametrize("name", RUNBOOKS)
def test_a_page_has_the_same_parts_as_all(name: str) -> None:
    """Whoever is woken finds meaning, harm, commands and remedy in the same places."""
    page = RUNBOOKS[name]

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


@pytest.mark.parametrize("name", RUNBOOKS)
def test_what_a_page_names_exists(name: str) -> None:
    """Links, metrics, settings, annotations, Events and objects that a page speaks of are there."""
    page = RUNBOOKS[name]
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


HOSTS = ("py" + "pi.org", "python" + "hosted", "proxy." + "golang", "registry." + "npmjs")


def test_no_file_names_a_package_index() -> None:
    """No tracked file names a package index, so that every mirror serves as well."""
    patterns = [argument for host in HOSTS for argument in ("-e", host)]
    found = subprocess.run(
        ["git", "grep", "-lIF", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert [] == found.stdout.split()


def test_the_walks_of_the_architecture_are_taken() -> None:
    """Each line of a walk begins with a module that is run through, in the order of first calls."""
    command = [sys.executable, "-m", "tests.unit.house", "orders"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    taken: dict[str, list[str]] = json.loads(result.stdout)
    shown_walks = {walk: walk_of_page(heading) for walk, heading in LED.items()}
    in_order = {
        walk: sorted(set(lines) & set(taken[walk]), key=taken[walk].index)
        for walk, lines in shown_walks.items()
    }

    assert in_order == shown_walks
    assert 10 >= max(map(len, shown_walks.values())) >= min(map(len, shown_walks.values())) > 3


def walk_of_page(heading: str) -> list[str]:
    """Return the module with which each numbered line below a heading begins."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    paths = re.findall(r"^\d+\. `([\w/]+)\.py`", section, re.MULTILINE)
    return [path.replace("/", ".").removesuffix(".__init__") for path in paths]
