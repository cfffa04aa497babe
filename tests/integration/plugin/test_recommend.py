"""Recommendations on a real API server: from profiles, and from what agents remember."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufence import names
from gpufence.need import NodeNeed, write_need
from kube import group
from kubectl_gpufence.verbs.recommend import PAGE
from tests.integration.plugin.site import PluginSite
from tests.support.builders import NEED_KEY, node_need, owner_need
from tests.support.servers import reply

pytestmark = pytest.mark.usefixtures("followed")

OWNER = "classifier"


def deployments(site: PluginSite) -> str:
    return group("apps/v1", "namespaces", site.team, "deployments")


@pytest.fixture(scope="module")
def deployed(site: PluginSite) -> PluginSite:
    """Make an owner whose container counts in units of gpushare."""
    labels = {"app": OWNER}
    asked = {names.GPUSHARE_MEMORY: "8"}
    server = {"name": "server", "image": "none", "resources": {"limits": asked}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [server]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    site.admin.post(deployments(site), {"metadata": {"name": OWNER}, "spec": spec})
    return site


@pytest.fixture
def remembering(deployed: PluginSite) -> Iterator[PluginSite]:
    """Let the agent remember nine days of it."""
    owner = owner_need(key=NEED_KEY._replace(namespace=deployed.team))
    text = write_need(node_need(owner))
    deployed.standin.on(f"GET {PAGE}", reply(text.encode()))
    yield deployed
    deployed.standin.on(f"GET {PAGE}", reply(b"no such page", status=404))


def recommended(site: PluginSite) -> dict[str, Any]:
    return site.json("recommend", "-n", site.team)


def test_without_profiles_the_agents_are_asked(remembering: PluginSite) -> None:
    """What they remember of days makes targets, with their reasons."""
    said = recommended(remembering)

    (need,) = said["needs"]
    assert ("agents", "6528Mi", "high") == (said["source"], need["target"], need["confidence"])
    assert "9 days, 9 pods, and the peak stands" == need["reasons"]["confidence"]
    assert any("no GPUMemoryProfiles" in note for note in said["notes"])


def test_an_agent_that_remembers_nothing_is_named(deployed: PluginSite) -> None:
    """Where no agent tells of days nothing is proposed, and a note says whose are missing."""
    deployed.standin.on(f"GET {PAGE}", reply(write_need(NodeNeed("x")).encode(), status=404))
    said = recommended(deployed)

    assert ("agents", []) == (said["source"], said["needs"])
    assert any("told of no days" in note for note in said["notes"])


def test_two_hours_are_no_ground_for_a_target(remembering: PluginSite) -> None:
    """At low confidence the peak is shown, no number to apply, and a note says what it takes."""
    key = NEED_KEY._replace(namespace=remembering.team)
    owner = owner_need(1, key, held_seconds=7200.0)
    remembering.standin.on(f"GET {PAGE}", reply(write_need(node_need(owner)).encode()))
    said = recommended(remembering)
    patches = remembering.run("recommend", "-n", remembering.team, "-o", "patch")

    (need,) = said["needs"]
    assert ("low", None, "4096Mi") == (need["confidence"], need["target"], need["peak"])
    assert any(
        "no target at low confidence: it takes 1d of memory" in note for note in said["notes"]
    )
    assert "" == patches.out
    assert "no target at low confidence" in patches.err


def test_patches_are_taken_as_they_are_written(remembering: PluginSite, tmp_path: Path) -> None:
    """The command in a patch's comment changes the owner, after which nothing is left to change."""
    done = remembering.run("recommend", "-n", remembering.team, "-o", "patch")
    file = tmp_path / "patch.yaml"
    file.write_text(done.out, encoding="utf-8")
    command = next(line for line in done.out.splitlines() if line.startswith("# kubectl "))
    words = command.removeprefix("# kubectl ").replace("FILE", str(file)).split()

    remembering.plane.kubectl(*words)

    changed = remembering.admin.get(f"{deployments(remembering)}/{OWNER}")
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    assert {names.GPUSHARE_MEMORY: "7"} == container["resources"]["limits"]
    again = remembering.run("recommend", "-n", remembering.team, "-o", "patch")
    assert "" == again.out
    assert "nothing to change" in again.err


def test_kustomize_takes_the_component(remembering: PluginSite, tmp_path: Path) -> None:
    """Beside the owner's manifest it changes the amount in what is built."""
    owner = remembering.admin.get(f"{deployments(remembering)}/{OWNER}")
    limits = owner["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits[names.GPUSHARE_MEMORY] = "8"
    remembering.admin.put(f"{deployments(remembering)}/{OWNER}", owner)
    done = remembering.run("recommend", "-n", remembering.team, "-o", "kustomize")
    owner |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    (tmp_path / "owner.yaml").write_text(yaml.safe_dump(owner), encoding="utf-8")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "kustomization.yaml").write_text(done.out, encoding="utf-8")
    whole = {"resources": ["owner.yaml"], "components": ["memory"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")

    built = yaml.safe_load(remembering.plane.kubectl("kustomize", str(tmp_path)).stdout)

    (container,) = built["spec"]["template"]["spec"]["containers"]
    assert {names.GPUSHARE_MEMORY: "7"} == container["resources"]["limits"]


def test_an_owner_that_is_gone_is_named(remembering: PluginSite) -> None:
    """What cannot be patched is said aside, and the rest is written."""
    gone = owner_need(key=NEED_KEY._replace(namespace=remembering.team, name="gone"))
    bare = owner_need(key=NEED_KEY._replace(namespace=remembering.team, kind="Pod", name="bare"))
    text = write_need(node_need(gone, bare))
    remembering.standin.on(f"GET {PAGE}", reply(text.encode()))

    done = remembering.run("recommend", "-n", remembering.team, "-o", "patch")

    assert 0 == done.code
    assert "Deployment/gone" in done.err
    assert "Pod/bare: its template cannot be patched" in done.err


def test_nobody_measured_is_no_error(deployed: PluginSite) -> None:
    """A namespace without models is told of in a note."""
    done = deployed.run("recommend", "-n", "kube-system")

    assert (0, "") == (done.code, done.out)
    assert "no agent has measured a model in namespace kube-system yet" in done.err


def test_tables_show_what_json_does(remembering: PluginSite) -> None:
    """The table and CSV have the same figures."""
    table = remembering.run("recommend", "-A").out.splitlines()
    rows = remembering.run("recommend", "-A", "-o", "csv").out.splitlines()

    assert "6528Mi" in table[1]
    assert "6528Mi" in rows[1]


def test_there_is_a_page_for_a_browser(remembering: PluginSite) -> None:
    """It has a picture of each model's days, and is there without any days as well."""
    done = remembering.run("recommend", "-A", "-o", "html")

    assert 0 == done.code, done.err
    assert done.out.startswith("<!DOCTYPE html>")
    assert 1 == done.out.count("<svg")
    remembering.standin.on(f"GET {PAGE}", reply(b"no such page", status=404))
    bare = remembering.run("recommend", "-n", remembering.team, "-o", "html").out
    assert 0 == bare.count("<svg")
    assert "No model has been measured yet." in bare


def test_a_namespace_bounds_its_targets(remembering: PluginSite) -> None:
    """No target is above what its namespace allows, and the reason says so."""
    kubectl, team = remembering.plane.kubectl, remembering.team
    kubectl("annotate", "namespace", team, f"{names.MAX_MEMORY}=5Gi")
    try:
        (need,) = recommended(remembering)["needs"]
    finally:
        kubectl("annotate", "namespace", team, f"{names.MAX_MEMORY}-")

    assert "5120Mi" == need["target"]
    assert "the ceiling bounds it at 5120 MiB" in need["reasons"]["target"]
