"""What is written by tools says what it is made from: chart and dashboards."""

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from hypothesis import given
from hypothesis import strategies as st

from agent.program import SETTINGS as AGENT_SETTINGS
from gpufence.settings import rows
from tests.support.metric_names import metric_names, metrics_in
from tools import ROOT
from tools.chart import CHART
from tools.chart.merge import ABSENT, Choice, Present, by_name, chosen, merged
from tools.chart.template import Code, Given, Printer, Unless
from tools.chart.values import SETTINGS, schema_page, value_of, values_page
from tools.dashboards import DASHBOARDS, FOLDER, pages
from tools.dashboards.panels import Kind, Panel
from tools.manifests import COMPONENTS, all_of, components, kustomization, objects

GKE, KILL = frozenset({"gke"}), frozenset({"kill"})
KINDS_OF_CHANGES = {"added", "changed", "deprecated", "removed", "fixed", "security"}
PRINTER = Printer({"gke": ".Values.gke", "kill": ".Values.kill"})
VALUES = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    max_leaves=6,
)


def printed(default: Any, *variants: tuple[frozenset[str], Any]) -> str:
    """Return the lines of an object whose part `spec` was changed."""
    told = [(flags, by_name({"spec": value})) for flags, value in variants]
    return "\n".join(PRINTER.mapping(merged(by_name({"spec": default}), told), 0))


@given(VALUES, VALUES, VALUES, VALUES)
def test_a_node_is_what_each_component_made_of_it(
    base: Any, by_gke: Any, by_kill: Any, by_both: Any
) -> None:
    """Whatever components change, none, each and both come out as kustomize had them."""
    node = merged(base, [(GKE, by_gke), (KILL, by_kill), (GKE | KILL, by_both)])

    assert base == chosen(node, frozenset())
    assert by_gke == chosen(node, GKE)
    assert by_kill == chosen(node, KILL)
    assert by_both == chosen(node, GKE | KILL)


def test_what_nobody_changes_has_no_condition() -> None:
    """An object that all have alike stays as it is."""
    assert {"a": 1} == merged({"a": 1}, [(GKE, {"a": 1})])


def test_two_who_add_to_one_list_share_it() -> None:
    """A list that is not there but for two components holds what each of them puts in."""
    one, other = {"name": "one"}, {"name": "other"}
    variants = [
        (GKE, by_name({"volumes": [one]})),
        (KILL, by_name({"volumes": [other]})),
        (GKE | KILL, by_name({"volumes": [one, other]})),
    ]

    node = merged({}, variants)

    assert isinstance(node["volumes"], Present)
    assert {"volumes": {"one": one, "other": other}} == chosen(node, GKE | KILL)
    assert {} == chosen(node, frozenset())


def test_a_changed_value_is_a_choice() -> None:
    """Who comes later in the list of components comes first in the template."""
    assert (
        "spec:\n"
        "{{- if .Values.kill }}\n  user: 0\n"
        "{{- else if .Values.gke }}\n  user: 2\n"
        "{{- else }}\n  user: 1\n{{- end }}"
    ) == printed({"user": 1}, (GKE, {"user": 2}), (KILL, {"user": 0}), (GKE | KILL, {"user": 0}))


def test_a_pair_has_its_own_condition_where_both_together_are_different() -> None:
    """What two components make of a value counts before what each of them makes."""
    text = printed({"user": 1}, (KILL, {"user": 0}), (GKE | KILL, {"user": 1}))

    assert "{{- if and .Values.gke .Values.kill }}\n  user: 1\n{{- else if .Values.kill }}" in text


def test_what_is_taken_away_is_there_unless() -> None:
    """A key that components remove is printed where none of them is."""
    assert "spec:\n  a: 1\n{{- if not (or .Values.gke .Values.kill) }}\n  b: 2\n{{- end }}" == (
        printed({"a": 1, "b": 2}, (GKE, {"a": 1}), (KILL, {"a": 1}))
    )


def test_a_named_item_has_a_condition_of_its_own() -> None:
    """A variable that a component adds is added to the list."""
    first, second = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}

    assert "env:\n  - name: A\n    value: '1'\n{{- if .Values.gke }}\n  - name: B\n" in (
        printed({"env": [first]}, (GKE, {"env": [first, second]}))
    )


def test_braces_of_others_stay() -> None:
    """What Prometheus shall fill in is not for Helm."""
    expected = 'spec:\n  text: on {{ "{{" }} $labels.node }}'

    assert expected == printed({"text": "on {{ $labels.node }}"})


def test_what_helm_fills_in_is_printed_as_it_is() -> None:
    """Code stands where its entry would, and a value may take the place of an item."""
    item = Unless('hasKey .Values.x "B"', Choice(ABSENT, ((GKE, {"name": "B"}),)))
    node = {"env": by_name([{"name": "A"}]) | {"B": item, "": Code(("{{- x }}", "- y"))}}
    node["env"] = type(by_name([{"name": "A"}]))(node["env"])

    assert [
        "env:",
        "- name: A",
        '{{- if not (hasKey .Values.x "B") }}',
        "{{- if .Values.gke }}",
        "- name: B",
        "{{- end }}",
        "{{- end }}",
        "{{- x }}",
        "- y",
    ] == PRINTER.mapping(node, 0)


@pytest.mark.parametrize(
    ("component", "value"),
    [("gke", "gke"), ("idle-release", "idleRelease"), ("kubernetes-1.30", "kubernetes130")],
)
def test_a_component_has_a_name_that_templates_can_say(component: str, value: str) -> None:
    """Neither dashes nor dots are in the names of values."""
    assert value == value_of(component)


def test_values_are_those_of_the_manual() -> None:
    """The page of values is that of the manual's table, and each value is in the schema."""
    values = yaml.safe_load(values_page())
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))

    assert values_page() == (CHART / "values.yaml").read_text("utf-8")
    assert set(values) == set(schema["properties"]) - {"global"}
    assert {value_of(name) for name in components()} < set(values)


def test_settings_that_manifests_make_are_nobody_elses() -> None:
    """The schema has each setting of a program but those that are set already."""
    page = schema_page([{"spec": {"env": {"GPUFENCE_NODE": {}}, "other": [{"env": {"X": {}}}]}}])
    agent = json.loads(page)["properties"]["settings"]["properties"]["agent"]
    known = {variable for row in rows(AGENT_SETTINGS) for variable in row.variables}

    assert known - {"GPUFENCE_NODE", "GPUFENCE_HELP_URL"} == set(agent["properties"])
    assert not agent["additionalProperties"]


def test_artifact_hub_is_told_what_the_chart_brings() -> None:
    """Its annotations name each program's image, each kind of ours, and changes in known words."""
    (about,) = all_of((CHART / "Chart.yaml").read_text("utf-8"))
    told = {
        key.removeprefix("artifacthub.io/"): yaml.safe_load(text)
        for key, text in about["annotations"].items()
    }
    defined = [
        (
            item["spec"]["names"]["kind"],
            item["spec"]["versions"][0]["name"],
            item["metadata"]["name"],
        )
        for name in components()
        for item in objects(COMPONENTS / name)
        if item["kind"] == "CustomResourceDefinition"
    ]

    assert list(SETTINGS) == [image["name"] for image in told["images"]]
    assert defined == [(crd["kind"], crd["version"], crd["name"]) for crd in told["crds"]]
    assert {one["kind"] for one in told["changes"]} <= KINDS_OF_CHANGES


def test_the_charts_version_is_the_projects() -> None:
    """Chart, application and images have one version, those of Artifact Hub's list too."""
    version = next(
        line.split('"')[1]
        for line in (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
        if line.startswith("version = ")
    )
    (about,) = all_of((CHART / "Chart.yaml").read_text("utf-8"))
    images = yaml.safe_load(about["annotations"]["artifacthub.io/images"])

    assert (version, version) == (about["version"], about["appVersion"])
    assert {version} == {image["image"].partition(":")[2] for image in images}


def test_a_list_that_several_may_begin_is_there_for_any_of_them() -> None:
    """A list that is empty without components is printed where one of those who fill it is."""
    one, other = {"name": "one"}, {"name": "other"}
    text = printed(
        {}, (GKE, {"v": [one]}), (KILL, {"v": [other]}), (GKE | KILL, {"v": [one, other]})
    )

    assert "{{- if or .Values.gke .Values.kill }}\n  v:\n" in text
    assert {"v": {"one": one}} == chosen(merged({}, [(GKE, by_name({"v": [one]}))]), GKE)


def test_items_of_one_name_are_a_plain_list() -> None:
    """Where two items have one name, none of them is known by it."""
    twice = [{"name": "a"}, {"name": "a"}]

    assert twice == by_name(twice)


@pytest.mark.parametrize("changed", [{"kind": "A", "b": 2}, ABSENT])
def test_an_object_may_stand_under_conditions(changed: Any) -> None:
    """A whole object that a component changes or removes is chosen, and printed under another."""
    node = Choice({"kind": "A"}, ((GKE, changed),))
    lines = PRINTER.document(node, ".Values.kill")

    assert ("{{- if .Values.kill }}", "{{- end }}") == (lines[0], lines[-1])
    assert ["---", "kind: A"] == PRINTER.document({"kind": "A"})
    assert "---" in lines


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


@pytest.mark.parametrize("panel", PANELS)
def test_no_counter_is_shown_as_it_is(panel: Panel) -> None:
    """What grows for ever is shown by how fast it does, or by how much of late."""
    asked = [query.expr for query in panel.queries if "_total{" in query.expr]

    assert [] == [expr for expr in asked if "rate(" not in expr and "increase(" not in expr]


@pytest.mark.parametrize("each", DASHBOARDS, ids=lambda each: each.name)
def test_links_carry_choices(each: Any) -> None:
    """A link leads to a dashboard that is there, with choices that it has."""
    known = {one.name: {choice.label for choice in one.variables} for one in DASHBOARDS}
    panels = [panel for section in each.sections for panel in section.panels]
    links = [panel.to for panel in panels if panel.to]

    assert [] == [link for link in links if not set(link.labels) <= known[link.dashboard]]
    assert len(panels) == len({panel.title for panel in panels})


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
    for annotation in page["annotations"].get("list", ()):
        for field in ("step", "textFormat", "titleFormat"):  # of Prometheus' annotations alone
            del annotation[field]

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


def test_an_entry_that_a_value_gives_may_be_left_out_or_stay() -> None:
    """Where deploy/ has none it is written if it is given; where it has one, null leaves that."""
    printer = Printer({})
    new = printer.mapping({"labels": Given(".Values.labels", ABSENT)}, 2)
    old = printer.mapping({"replicas": Given(".Values.replicas", 2)}, 0)

    assert [
        "{{- if .Values.labels }}",
        "  labels: {{ toJson .Values.labels }}",
        "{{- end }}",
    ] == new
    assert [
        '{{- if kindIs "invalid" .Values.replicas }}',
        "replicas: 2",
        "{{- else if .Values.replicas }}",
        "replicas: {{ toJson .Values.replicas }}",
        "{{- end }}",
    ] == old
