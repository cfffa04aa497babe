"""The chart says what the manifests say: with whatever values, Helm renders what kustomize does."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.controlplane import Assets
from tests.integration.deploy.rendering import Kustomize, Objects
from tests.support.programs import CHART, Helm
from tests.support.site import IMPERSONATION
from tools import ROOT
from tools.manifests import REGISTRY, all_of, components, own_overlay

HOOK = "helm.sh/hook"
FIRST_JOB = "gpufence-certs-issue-1-"
INSTALL = "gpufence-certs-install"
AGENT = "gpufence-agent"
# Lists of which Kubernetes knows the items by their names, so that their order says nothing.
BY_NAME = {"env", "volumes", "volumeMounts"}
OWN_ACCOUNT = ("kubernetes-1.30",)
PAIRS = [
    ("gke", "last-resort-kill"),
    ("gke", "simulated"),
    ("gpushare", "volcano"),
    ("cert-manager", "idle-release"),
    ("cert-manager", "gitops"),
    ("idle-release", "observe-first"),
    ("kubernetes-1.30", "last-resort-kill"),
    ("driver-cdi", "driver-nri"),
    ("driver-limits", "driver-mount"),
    ("driver-privileged", "last-resort-kill"),
    ("driver-limits", "gke", "kubernetes-1.30"),
]
SAID = {"driver-limits": "labelled"}
"""What stands for true where a value is a word."""


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
        named = key in BY_NAME and all(isinstance(item, dict) for item in items)
        return sorted(items, key=lambda item: item["name"]) if named else items
    return value


def by_helm(helm: Helm, chosen: tuple[str, ...], *more: str, kubernetes: str = "1.37.0") -> Objects:
    said = {name: SAID.get(name, "true") if name in chosen else "false" for name in components()}
    values = [f"--set={value_of(name)}={value}" for name, value in said.items()]
    values += ["--set=crds.keep=false"]
    items = known(map(plainly, all_of(helm.template(*values, *more, kubernetes=kubernetes))))
    items = {
        key: without_hook(item)
        for key, item in items.items()
        if key[1] == INSTALL or HOOK not in item["metadata"].get("annotations", {})
    }
    return {key: item for key, item in items.items() if not key[1].startswith(FIRST_JOB)}


def plainly(item: dict[str, Any]) -> dict[str, Any]:
    """Call the install's Job as the manifests do, without what its name has of its content."""
    if item and item["metadata"]["name"].startswith(f"{INSTALL}-"):
        item["metadata"]["name"] = INSTALL
    return item


def test_helm_links_to_the_page_for_users_as_the_manual_does(
    helm: Helm, kubectl: Path, tmp_path: Path
) -> None:
    """What the manual adds to a kustomization is the chart's value, of all programs that link."""
    _, _, part = (ROOT / "docs" / "install.md").read_text("utf-8").partition("### A link for users")
    patches = part.split("```yaml\n")[1].split("```")[0]
    with (own_overlay(tmp_path, ["idle-release"]) / "kustomization.yaml").open("a") as file:
        file.write(patches)
    done = subprocess.run([kubectl, "kustomize", tmp_path], capture_output=True, check=True)
    url = "https://wiki.example.com/gpu"

    assert 3 == done.stdout.count(url.encode())
    assert known(all_of(done.stdout.decode())) == by_helm(
        helm, ("idle-release",), f"--set=helpUrl={url}"
    )


def without_hook(item: dict[str, Any]) -> dict[str, Any]:
    """Take what Helm is told about the install's objects from them; it removes them itself."""
    if item["metadata"]["name"] == INSTALL and HOOK in item["metadata"].get("annotations", {}):
        del item["metadata"]["annotations"]
        if item["kind"] == "Job":
            container = item["spec"]["template"]["spec"]["containers"][0]
            container["args"] = ["--remove-install-account"]
            item["spec"]["ttlSecondsAfterFinished"] = 600
    return item


@pytest.mark.parametrize("chosen", [(), *((name,) for name in components()), *PAIRS], ids="+".join)
def test_helm_renders_what_kustomize_does(
    helm: Helm, by_kustomize: Kustomize, chosen: tuple[str, ...]
) -> None:
    """Each component is a value of the same meaning; `make chart` writes the templates anew."""
    assert known(by_kustomize(chosen).values()) == by_helm(helm, chosen)


@pytest.mark.parametrize(
    ("version", "chosen"),
    [
        ("1.30.0", OWN_ACCOUNT),
        (f"1.{IMPERSONATION - 1}.9-gke.1234000", OWN_ACCOUNT),
        (f"1.{IMPERSONATION}.0-rc.1", ()),
        (f"1.{IMPERSONATION}.2+k3s1", ()),
    ],
)
def test_rights_are_those_of_the_clusters_version(
    helm: Helm, by_kustomize: Kustomize, version: str, chosen: tuple[str, ...]
) -> None:
    """Who says nothing gets component `kubernetes-1.30` where agents cannot act as their nodes."""
    assert known(by_kustomize(chosen).values()) == by_helm(
        helm, (), "--set=kubernetes130=null", kubernetes=version
    )


@pytest.mark.parametrize(("version", "chosen"), [("1.30.0", ()), ("1.37.0", OWN_ACCOUNT)])
def test_a_value_that_is_said_beats_the_version(
    helm: Helm, by_kustomize: Kustomize, version: str, chosen: tuple[str, ...]
) -> None:
    """Whoever knows his cluster better than its version's number has the last word."""
    assert known(by_kustomize(chosen).values()) == by_helm(helm, chosen, kubernetes=version)


def test_an_older_cluster_is_refused_by_its_version(helm: Helm) -> None:
    """Before 1.30 policies and match conditions do not do what we ask of them."""
    with pytest.raises(AssertionError, match=r">=1\.30\.0"):
        helm.template(kubernetes="1.29.14")


@pytest.mark.nightly
def test_any_components_make_the_same_together(helm: Helm, by_kustomize: Kustomize) -> None:
    """The same holds of any of them together."""

    @given(st.sets(st.sampled_from(components()), min_size=3).map(sorted).map(tuple))
    def check(chosen: tuple[str, ...]) -> None:
        assert known(by_kustomize(chosen).values()) == by_helm(helm, chosen)

    check()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("gke=yes", "at '/gke': got string, want boolean"),
        ("gkee=true", "additional properties 'gkee' not allowed"),
        (
            "image.registry=",
            "image.registry is empty: gpufence has no public registry. Push the images",
        ),
        ("image.registry=5", "at '/image/registry': got number, want string"),
        ("image.digests.agent=1", "at '/image/digests/agent': got number, want string"),
        ("image.digests.agnet=x", "at '/image/digests': additional properties 'agnet' not allowed"),
        ("imagePullSecrets=mine", "at '/imagePullSecrets': got string, want array"),
        ("settings.agnet.GPUFENCE_HOLD_SECONDS=1", "at '/settings': additional properties 'agnet'"),
        ("settings.agent.GPUFENCE_HOLD=1", "at '/settings/agent': additional properties"),
        ("settings.agent.GPUFENCE_NODE=x", "at '/settings/agent': additional properties"),
        ("settings.agent.GPUFENCE_HOLD_SECONDS.a=1", "'/settings/agent/GPUFENCE_HOLD_SECONDS'"),
        ("settings.agent.GPUFENCE_HOLD_SECONDS=abc", "'abc' does not match pattern"),
        ("settings.agent.GPUFENCE_HOLD_SECONDS=90000", "maximum: got 90,000, want 86,400"),
        ("settings.agent.GPUFENCE_IMPERSONATION=maybe", "value must be one of 'auto', 'on', 'off'"),
        ("settings.agent.GPUFENCE_LAST_RESORT_KILL=maybe", "'maybe' does not match pattern"),
        ("webhook.replicas=0", "at '/webhook/replicas': minimum: got 0, want 1"),
        ("agent.replicas=3", "at '/agent': additional properties 'replicas' not allowed"),
        ("agent.tolerations.key=x", "at '/agent/tolerations': got object, want null or array"),
        ("image.pullPolicy=always", "at '/image/pullPolicy': value must be one of"),
        ("website=git.example.com", "at '/website': 'git.example.com' does not match"),
        ("kubernetes130=maybe", "at '/kubernetes130': got string, want null or boolean"),
        ("driverLimits=maybe", "at '/driverLimits': value must be one of 'off', 'on', 'labelled'"),
    ],
)
def test_a_value_that_nobody_knows_is_refused_by_its_name(
    helm: Helm, value: str, said: str
) -> None:
    """Helm says where the mistake is: components, settings of programs, and what manifests set."""
    refused = helm("template", "gpufence", str(CHART), f"--set={value}", check=False)

    assert 1 == refused.returncode
    assert said in refused.stderr


@pytest.mark.parametrize(
    ("value", "said"), [("on", "on"), ("true", "on"), ("labelled", "labelled"), ("auto", "auto")]
)
def test_the_drivers_limits_are_a_word(helm: Helm, value: str, said: str) -> None:
    """YAML reads a plain `on` as true; the webhook gets the word."""
    items = known(all_of(helm.template(f"--set=driverLimits={value}")))
    (container,) = items["Deployment", "gpufence-webhook"]["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}

    assert said == environment["GPUFENCE_DRIVER_LIMITS"]


def test_profiles_outlive_the_value_that_brought_them(helm: Helm) -> None:
    """Helm leaves the kind GPUMemoryProfile, and so all profiles, unless that is asked for."""
    chosen = ("--set=need=true", "--set=idleRelease=true")
    key = "CustomResourceDefinition", "gpumemoryprofiles.gpufence.io"
    policy = {"helm.sh/resource-policy": "keep"}
    kept = known(all_of(helm.template(*chosen)))[key]["metadata"]
    left = known(all_of(helm.template(*chosen, "--set=crds.keep=false")))[key]["metadata"]

    assert policy.items() <= kept["annotations"].items()
    assert not policy.items() & left.get("annotations", {}).items()


def template_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return what a workload makes its pods of."""
    spec = item["spec"]
    found: dict[str, Any] = spec.get("jobTemplate", {"spec": spec})["spec"]["template"]
    return found


ENTRY = {"name": "mine", "value": "x"}
VOLUME = {"name": "mine", "emptyDir": {}}
MOUNT = {"name": "mine", "mountPath": "/mine"}
USUAL: dict[str, Any] = {
    "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "pool", "operator": "Exists"}],
    "affinity": {"podAffinity": {}},
    "priorityClassName": "mine",
    "podLabels": {"team": "gpu"},
    "podAnnotations": {"example.com/scrape": "true"},
    "serviceAccountAnnotations": {"example.com/role": "mine"},
    "extraEnv": [ENTRY],
}
SERVING = {"replicas": 3, "topologySpreadConstraints": [{"maxSkew": 2}]}
MOUNTING = {"extraVolumes": [VOLUME], "extraVolumeMounts": [MOUNT]}


@pytest.fixture(scope="module")
def bent(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """Render the chart with every usual value of every program."""
    values = {
        "idleRelease": True,
        "image": {"pullPolicy": "Always"},
        "webhook": {**USUAL, **SERVING, **MOUNTING, "hostNetwork": True},
        "controller": {**USUAL, **SERVING},
        "agent": {**USUAL, **MOUNTING, "runtimeClassName": "mine"},
        "certs": USUAL,
    }
    file = tmp_path_factory.mktemp("bent") / "values.yaml"
    file.write_text(json.dumps(values), encoding="utf-8")
    return known(all_of(helm.template(f"--values={file}")))


@pytest.mark.parametrize(
    ("kind", "program", "more"),
    [
        ("Deployment", "webhook", {*SERVING, *MOUNTING, "hostNetwork"}),
        ("Deployment", "controller", {*SERVING}),
        ("DaemonSet", "agent", {*MOUNTING, "runtimeClassName"}),
        ("CronJob", "certs", set()),
    ],
)
def test_each_program_has_the_usual_values(
    bent: Objects, kind: str, program: str, more: set[str]
) -> None:
    """What people know from other charts stands where Kubernetes looks for it."""
    item = bent[kind, f"gpufence-{program}"]
    template = template_of(item)
    spec, metadata = template["spec"], template["metadata"]
    (container,) = spec["containers"]
    account = bent["ServiceAccount", f"gpufence-{program}"]["metadata"]
    expected = {**USUAL, **SERVING, **MOUNTING, "hostNetwork": True, "runtimeClassName": "mine"}
    found = {name: spec.get(name) for name in expected}
    found |= {
        "replicas": item["spec"].get("replicas"),
        "resources": container["resources"],
        "podLabels": {"team": metadata["labels"]["team"]},
        "podAnnotations": metadata["annotations"],
        "serviceAccountAnnotations": account["annotations"],
        "extraEnv": [entry for entry in container["env"] if entry == ENTRY],
        "extraVolumes": [one for one in spec.get("volumes", []) if one == VOLUME],
        "extraVolumeMounts": [one for one in container.get("volumeMounts", []) if one == MOUNT],
    }

    assert {name: expected[name] for name in {*USUAL, *more}} == {
        name: value for name, value in found.items() if value
    }
    assert "Always" == container["imagePullPolicy"]
    assert f"gpufence-{program}" == metadata["labels"]["app.kubernetes.io/name"]


def test_an_image_is_named_by_its_digest_where_one_is_given(helm: Helm) -> None:
    """A release says what it pushed, and the others go on by their tag."""
    digest = f"sha256:{7:064}"
    page = helm.template(f"--set=image.digests.agent={digest}", "--set=image.tag=v9")

    assert f"image: {REGISTRY}/agent@{digest}\n" in page
    assert f"image: {REGISTRY}/webhook:v9\n" in page


def test_an_empty_value_leaves_out_what_the_manifests_have(helm: Helm) -> None:
    """Null is as in the manifests, and empty is none, so that people can take something away."""
    values = ("--set-json=agent.tolerations=[]", "--set=agent.priorityClassName=")
    template = template_of(known(all_of(helm.template(*values)))["DaemonSet", AGENT])

    assert not {"tolerations", "priorityClassName"} & template["spec"].keys()
    assert {"affinity", "runtimeClassName"} <= template["spec"].keys()


def test_alerts_lead_to_a_copy_of_the_runbooks(helm: Helm) -> None:
    """The project has no public address, so that whoever installs says where his copy is."""
    website = "https://git.example.com/gpufence/blob/main"
    page = helm.template("--set=prometheusOperator=true", f"--set=website={website}")

    assert "gpufence.example" not in page
    assert f"runbook_url: {website}/docs/runbooks/GpufenceAgentAway.md\n" in page


def test_the_right_on_the_webhook_configuration_is_there_while_helm_installs(helm: Helm) -> None:
    """All that has that right is a hook, which Helm removes whether the install succeeds or not."""
    items = known(all_of(helm.template()))
    install = {
        kind: item["metadata"]["annotations"]
        for (kind, name), item in items.items()
        if name == INSTALL
    }
    lasting = [
        item
        for (kind, _), item in items.items()
        if kind == "ClusterRole" and HOOK not in item["metadata"].get("annotations", {})
    ]
    writing = [
        rule
        for item in lasting
        for rule in item.get("rules") or []
        if "mutatingwebhookconfigurations" in rule["resources"] and {"get"} != set(rule["verbs"])
    ]

    assert {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"} == set(install)
    assert all(
        "hook-succeeded" in notes["helm.sh/hook-delete-policy"] for notes in install.values()
    )
    assert all(
        "hook-failed" in notes["helm.sh/hook-delete-policy"]
        for kind, notes in install.items()
        if kind != "Job"
    )
    assert [] == writing


def test_what_the_webhook_serves_is_issued_before_any_hook_runs(helm: Helm) -> None:
    """`helm install --wait` runs hooks once the webhook is ready, for which it has to serve."""
    items = known(all_of(helm.template()))
    (job,) = (item for (_, name), item in items.items() if name.startswith(FIRST_JOB))
    (container,) = job["spec"]["template"]["spec"]["containers"]

    assert HOOK not in job["metadata"]["annotations"]
    assert ["gpufence-certs", "issue"] == container["command"]


def test_a_chart_without_a_registry_is_refused(helm: Helm) -> None:
    """Nothing is pulled from an account that is nobody's: the value and the remedy are named."""
    refused = helm("template", "gpufence", str(CHART), check=False)

    assert 1 == refused.returncode
    assert "--set image.registry=registry.example.com/gpufence" in refused.stderr
