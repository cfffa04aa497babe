"""Webhook, agent and controller, scraped by a real Prometheus as the shipped monitors say."""

import base64
import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import jsonpatch
import pytest

from gpufence import names
from kube import JsonObject, PatchType, core, group
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support import objects
from tests.support.agent.capped import capped
from tests.support.agent.node_site import OVER, WITHIN, NodeSite, fenced_pod, place
from tests.support.authority import Authority, write_files
from tests.support.controller.site import COMPONENT, ControllerProcess
from tests.support.metric_rules import problems
from tests.support.objects import controlled, gpu_pod
from tests.support.observing import eventually
from tests.support.processes import LOOPBACK
from tests.support.programs import Prometheus, Series, Target, prometheus
from tests.support.rewriting import encoded, review
from tests.support.running import program
from tests.support.site import AGENT, RIGHTS, WEBHOOK
from tests.support.tree import found, moved
from tests.support.webhook_site import Webhook
from tools.manifests import COMPONENTS, DEPLOY
from tools.manifests import objects as manifests

SCRAPE_SECONDS = 1.0
_AGENT = {"GPUFENCE_IDLE_SECONDS": "1", "GPUFENCE_ACTIVITY_SECONDS": "0.5"}
_NODE_NAME = "__meta_kubernetes_pod_node_name"


class ScrapedSite(NodeSite):
    """A node where one pod keeps its limit, one breaks it, one is evicted, one is idle."""

    webhook: Webhook
    prometheus: Prometheus
    addresses: dict[str, str]
    team: str
    strict: str

    def install(self) -> None:
        super().install()
        items = (*manifests(COMPONENT), *manifests(COMPONENTS / "quota"))
        shipped = (item for item in items if item["kind"] in RIGHTS | {"Lease", "ConfigMap"})
        self.apply(*self.shipped("webhook"), *(moved(item, self.system) for item in shipped))
        switch = objects.policy(self.system, "evict")
        switch["data"][names.POLICY_MAX_IDLE] = "release"
        self.apply(switch)

    def admit(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod as the webhook rewrites it."""
        body = encoded(review(object=pod, namespace=self.team))
        answer = json.loads(self.webhook.post("/v1/pods/cap", body)[1])["response"]
        patch = json.loads(base64.b64decode(answer["patch"]))
        rewritten: dict[str, Any] = jsonpatch.apply_patch(pod, patch)
        return rewritten

    def people(self) -> None:
        """Make the pods; the idle one belongs to a StatefulSet that may be released."""
        labels = {names.MODE: "cap", names.IDLE: "release"}
        said = {names.QUOTA_MEMORY: "64Gi"}
        self.admin.patch(
            core("namespaces", self.team),
            {"metadata": {"labels": labels, "annotations": said}},
            PatchType.MERGE,
        )
        owner = self.admin.post(
            group("apps/v1", "namespaces", self.team, "statefulsets"), _stateful_set("idle")
        )
        for card, (name, script) in enumerate((("good", WITHIN), ("greedy", OVER))):
            self._place(self.admit(_workload(name, script, card)))
        self._place(controlled(self.admit(_workload("idle-0", WITHIN, 2)), owner))
        ends = capped("ends", "hold 1Gi; grow 8Gi/s to 4Gi")
        place(self.ground(self.strict), fenced_pod("evicted", OVER, 2), ends)

    def targets(self, ports: dict[str, int]) -> Iterator[tuple[str, Target]]:
        """Yield each program's page with the labels that Prometheus' operator would give it."""
        for monitor in manifests(COMPONENTS / "prometheus-operator"):
            if monitor["kind"] != "PodMonitor":
                continue
            name = monitor["metadata"]["name"]
            (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
            labels = {
                "namespace": self.system,
                "pod": f"{name}-0",
                "container": name.removeprefix("gpufence-"),
                "endpoint": endpoint["port"],
                "cluster": "east",
            }
            for rule in endpoint.get("relabelings", ()):
                assert [_NODE_NAME] == rule["sourceLabels"]
                labels[rule["targetLabel"]] = self.node.name
            honor = endpoint.get("honorLabels", False)
            yield f"{self.system}/{name}", Target(f"{LOOPBACK}:{ports[name]}", labels, honor)

    def _place(self, pod: dict[str, Any]) -> None:
        pod["spec"]["nodeName"] = self.node.name
        self.admin.post(core("namespaces", self.team, "pods"), pod)


def _workload(name: str, script: str, card: int) -> dict[str, Any]:
    """Describe a pod as its author wrote it, but for the card, which a scheduler chooses."""
    pod = fenced_pod(name, script, card)
    del pod["metadata"]["annotations"][names.INJECTED]
    if script == WITHIN:
        pod["metadata"]["annotations"][names.BURST] = "200%"
    return pod


def _stateful_set(name: str) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": fenced_pod(name, WITHIN)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@contextmanager
def running(plane: ControlPlane, folder: Path) -> Iterator[ScrapedSite]:
    """Start everything, and wait for nothing: who asks Prometheus does."""
    name = f"gpu-{uuid4().hex[:8]}"
    options = NodeOptions(
        kubeconfig=plane.node_kubeconfig(name),
        admin_kubeconfig=plane.kubeconfig(),
        name=name,
        cards="3xT4",
    )
    authority = Authority(folder)
    write_files(folder, authority.leaf())
    with ExitStack() as undo:
        system = undo.enter_context(plane.fresh_namespace("system"))
        node = undo.enter_context(SimulatedNode(options))
        site = undo.enter_context(ScrapedSite(plane, node, system))
        site.install()
        site.team = undo.enter_context(plane.fresh_namespace())
        site.strict = undo.enter_context(plane.fresh_namespace())
        account = str(site.kubeconfig_of(names.WEBHOOK_SERVICE))
        site.webhook = undo.enter_context(
            Webhook(
                folder,
                authority.client_context(),
                GPUFENCE_CLUSTER="auto",
                GPUFENCE_DEFAULT_CARD="15360Mi",
                GPUFENCE_NAMESPACE=system,
                KUBECONFIG=account,
            )
        )
        agent = undo.enter_context(site.agent(**_AGENT))
        controller = undo.enter_context(
            ControllerProcess(
                KUBECONFIG=str(site.kubeconfig_of(names.CONTROLLER)),
                GPUFENCE_NAMESPACE=system,
                GPUFENCE_AGENTS=f"{name}=http://{LOOPBACK}:{agent.port}",
            )
        )
        ports = {
            WEBHOOK: site.webhook.status_port,
            AGENT: agent.port,
            names.CONTROLLER: controller.port_of("statusListen"),
        }
        targets = dict(site.targets(ports))
        site.addresses = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
        site.prometheus = undo.enter_context(prometheus(folder, targets, SCRAPE_SECONDS))
        site.people()
        yield site
        site.fenced.append(site.team)
        site.clear()


PATIENCE_SECONDS = 30.0
WINDOW = "10s"  # several scrapes, as Grafana's own variable promises
LABEL = re.compile(r"{{\s*(\w+)\s*}}")
METRIC = re.compile(r"\b(gpufence_\w+)(?:{([^}]*)})?")
VARIABLE = re.compile(r"label_values\((\w+(?:{.*})?), (\w+)\)")
CHOICES = ("cluster", "node", "card", "namespace")
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
    windows = dict.fromkeys(("__rate_interval", "__range"), WINDOW)
    for name, value in {**dict.fromkeys(CHOICES, ".*"), **windows}.items():
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
        counted = partial(site.prometheus.query, f"count by ({label}) ({filled(metric)})")
        assert eventually(counted, PATIENCE_SECONDS)  # once it has been scraped
        series = counted()

        assert [True] * len(series) == [bool(item.labels.get(label)) for item in series]


def annotations() -> Iterator[Any]:
    for page in dashboards():
        for each in page["annotations"].get("list", ()):
            yield pytest.param(each, id=f"{page['uid']}: {each['name']}")


@pytest.mark.parametrize("annotation", list(annotations()))
def test_an_eviction_is_a_line_across_the_panels(
    site: ScrapedSite, annotation: dict[str, Any]
) -> None:
    """What has been evicted is found in the minute of it, with the labels that its text names."""
    expr = f"max_over_time(({filled(annotation['expr'])})[10m:1s])"
    query = Asked(expr, frozenset(LABEL.findall(annotation["textFormat"])), exact=False)

    assert eventually(partial(is_answered, site, query), PATIENCE_SECONDS)


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
        ours = "".join(re.findall(r'program="\w+"', matchers))
        query = Asked(f"{metric}{{{ours}}}", labels, exact=False)

        assert eventually(partial(is_answered, site, query), PATIENCE_SECONDS)


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", [WEBHOOK, AGENT, names.CONTROLLER])
def test_the_page_of_a_program_keeps_to_the_conventions(site: ScrapedSite, name: str) -> None:
    """What a program at work shows passes Prometheus' own lint and ours."""
    with urllib.request.urlopen(f"http://{site.addresses[name]}/metrics", timeout=10) as reply:
        page = reply.read().decode()
    command = [str(program("promtool")), "check", "metrics"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=False)

    assert [] == list(problems(page))
    assert (0, "") == (done.returncode, done.stdout + done.stderr)


def is_answered(site: ScrapedSite, query: Asked) -> bool:
    """Ask once more, after another pod was made: rates want something to happen."""
    site.admit(gpu_pod("visitor"))
    return query.is_answered(site.prometheus.query(query.expr))
