"""
The chart says what the manifests say: with whatever values, Helm renders what kustomize does.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.controlplane import Assets
from tests.integration.deploy.rendering import Objects
from tests.support.helm import Helm
from tests.support.manifests import all_of, components, own_overlay

pytestmark = pytest.mark.timeout(300)

HOOK = "helm.sh/hook"
FIRST_JOB = "gpufence-certs-install-1"
# Lists of which Kubernetes knows the items by their names, so that their order says nothing.
BY_NAME = {"env", "volumes", "volumeMounts"}
PAIRS = [
    ("gke", "last-resort-kill"),
    ("gke", "simulated"),
    ("gpushare", "volcano"),
    ("cert-manager", "idle-release"),
    ("idle-release", "observe-first"),
    ("kubernetes-1.30", "last-resort-kill"),
]


@pytest.fixture(scope="session")
def kubectl(assets: Assets) -> Path:
    found = assets.find("kubectl")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def helm(helm_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(helm_program, tmp_path_factory.mktemp("helm"))


def value_of(component: str) -> str:
    """
    Return a component's name among the chart's values.
    """
    first, *rest = component.replace(".", "").split("-")
    return first + "".join(map(str.capitalize, rest))


def known(items: Any) -> Objects:
    return {(item["kind"], item["metadata"]["name"]): plain(item) for item in items if item}


def plain(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: plain(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [plain(item) for item in value]
        return sorted(items, key=lambda item: item["name"]) if key in BY_NAME else items
    return value


def by_helm(helm: Helm, chosen: tuple[str, ...], *more: str) -> Objects:
    values = [f"--set={value_of(name)}={str(name in chosen).lower()}" for name in components()]
    items = known(all_of(helm.template(*values, *more)))
    items = {
        key: item
        for key, item in items.items()
        if HOOK not in item["metadata"].get("annotations", {})
    }
    if job := items.pop(("Job", FIRST_JOB), None):
        job["metadata"]["name"] = FIRST_JOB.removesuffix("-1")
        items["Job", job["metadata"]["name"]] = job
    return items


def by_kustomize(kubectl: Path, folder: Path, chosen: tuple[str, ...]) -> Objects:
    here = folder / f"{len(list(folder.iterdir()))}"
    here.mkdir()
    command = [str(kubectl), "kustomize", str(own_overlay(here, sorted(chosen)))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return known(all_of(done.stdout))


@pytest.mark.parametrize("chosen", [(), *((name,) for name in components()), *PAIRS], ids="+".join)
def test_helm_renders_what_kustomize_does(
    helm: Helm, kubectl: Path, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    """
    Each component is a value of the same meaning; `make chart` writes the templates anew.
    """
    expected = by_kustomize(kubectl, tmp_path, chosen)

    assert expected == by_helm(helm, chosen)


def test_any_components_make_the_same_together(
    helm: Helm, kubectl: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    The same holds of any of them together.
    """
    folder = tmp_path_factory.mktemp("together")

    @given(st.sets(st.sampled_from(components()), min_size=3).map(sorted).map(tuple))
    def check(chosen: tuple[str, ...]) -> None:
        assert by_kustomize(kubectl, folder, chosen) == by_helm(helm, chosen)

    check()
