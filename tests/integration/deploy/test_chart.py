"""The chart says what the manifests say: with whatever values, Helm renders what kustomize does."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.controlplane import Assets
from tests.integration.deploy.rendering import Objects
from tests.support.helm import CHART, Helm
from tests.support.kubernetes import IMPERSONATION
from tests.support.manifests import all_of, components, own_overlay

pytestmark = pytest.mark.timeout(300)

HOOK = "helm.sh/hook"
FIRST_JOB = "gpufence-certs-install-1"
# Lists of which Kubernetes knows the items by their names, so that their order says nothing.
BY_NAME = {"env", "volumes", "volumeMounts"}
OWN_ACCOUNT = ("kubernetes-1.30",)
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
    """Return a component's name among the chart's values."""
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


def by_helm(helm: Helm, chosen: tuple[str, ...], *more: str, kubernetes: str = "1.37.0") -> Objects:
    values = [f"--set={value_of(name)}={str(name in chosen).lower()}" for name in components()]
    items = known(all_of(helm.template(*values, *more, kubernetes=kubernetes)))
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
    """Each component is a value of the same meaning; `make chart` writes the templates anew."""
    expected = by_kustomize(kubectl, tmp_path, chosen)

    assert expected == by_helm(helm, chosen)


@pytest.mark.parametrize(
    ("version", "chosen"),
    [
        *((f"1.{minor}.0", OWN_ACCOUNT) for minor in range(30, IMPERSONATION)),
        ("1.35.9-gke.1234000", OWN_ACCOUNT),
        ("1.35.4-eks-0abc123", OWN_ACCOUNT),
        ("1.36.0-rc.1", ()),
        ("1.36.2+k3s1", ()),
        ("1.37.1", ()),
    ],
)
def test_rights_are_those_of_the_clusters_version(
    helm: Helm, kubectl: Path, tmp_path: Path, version: str, chosen: tuple[str, ...]
) -> None:
    """Who says nothing gets component `kubernetes-1.30` where agents cannot act as their nodes."""
    expected = by_kustomize(kubectl, tmp_path, chosen)

    assert expected == by_helm(helm, (), "--set=kubernetes130=null", kubernetes=version)


@pytest.mark.parametrize(("version", "chosen"), [("1.30.0", ()), ("1.37.0", OWN_ACCOUNT)])
def test_a_value_that_is_said_beats_the_version(
    helm: Helm, kubectl: Path, tmp_path: Path, version: str, chosen: tuple[str, ...]
) -> None:
    """Whoever knows his cluster better than its version's number has the last word."""
    expected = by_kustomize(kubectl, tmp_path, chosen)

    assert expected == by_helm(helm, chosen, kubernetes=version)


def test_an_older_cluster_is_refused_by_its_version(helm: Helm) -> None:
    """Before 1.30 policies and match conditions do not do what we ask of them."""
    with pytest.raises(AssertionError, match=r">=1\.30\.0"):
        helm.template(kubernetes="1.29.14")


def test_any_components_make_the_same_together(
    helm: Helm, kubectl: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same holds of any of them together."""
    folder = tmp_path_factory.mktemp("together")

    @given(st.sets(st.sampled_from(components()), min_size=3).map(sorted).map(tuple))
    def check(chosen: tuple[str, ...]) -> None:
        assert by_kustomize(kubectl, folder, chosen) == by_helm(helm, chosen)

    check()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("gke=yes", "at '/gke': got string, want boolean"),
        ("gkee=true", "additional properties 'gkee' not allowed"),
        ("image.prefix=", "at '/image/prefix': minLength: got 0, want 1"),
        ("imagePullSecrets=mine", "at '/imagePullSecrets': got string, want array"),
        ("settings.agnet.GPUFENCE_HOLD_SECONDS=1", "at '/settings': additional properties 'agnet'"),
        ("settings.agent.GPUFENCE_HOLD=1", "at '/settings/agent': additional properties"),
        ("settings.agent.GPUFENCE_NODE=x", "at '/settings/agent': additional properties"),
        ("settings.agent.GPUFENCE_HOLD_SECONDS.a=1", "'/settings/agent/GPUFENCE_HOLD_SECONDS'"),
        ("website=git.example.com", "at '/website': 'git.example.com' does not match"),
        ("kubernetes130=maybe", "at '/kubernetes130': got string, want null or boolean"),
    ],
)
def test_a_value_that_nobody_knows_is_refused_by_its_name(
    helm: Helm, value: str, said: str
) -> None:
    """Helm says where the mistake is: components, settings of programs, and what manifests set."""
    refused = helm("template", "gpufence", str(CHART), f"--set={value}", check=False)

    assert 1 == refused.returncode
    assert said in refused.stderr


def test_alerts_lead_to_a_copy_of_the_runbooks(helm: Helm) -> None:
    """The project has no public address, so that whoever installs says where his copy is."""
    website = "https://git.example.com/gpufence/blob/main"
    page = helm.template("--set=prometheusOperator=true", f"--set=website={website}")

    assert "gpufence.example" not in page
    assert f"runbook_url: {website}/docs/runbooks/GpufenceAgentAway.md\n" in page
