"""
Owners on a real API server: found by climbing, scaled and annotated only as long as nobody else
changed them.
"""

from collections.abc import Iterator

import pytest

from gpufence import names
from gpufence.times import read_moment
from kube import Client, ConflictError, JsonObject, KubeError, PatchType, group
from kube.discovery import Kinds
from kube.kinds import ApiKind
from kube.owners import ApiOwner
from kube.workloads import (
    annotate,
    bring_to,
    find_owner,
    read_owner,
    set_replicas,
    write_note,
)
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import client_of, pod
from tests.support.objects import (
    FARMS,
    HERDS,
    NOTEBOOKS,
    WORKLOADS,
    controlled,
    define,
    deployment,
    undefine,
)


@pytest.fixture(scope="module", autouse=True)
def defined(control_plane: ControlPlane) -> Iterator[None]:
    definitions = (NOTEBOOKS, WORKLOADS, FARMS, HERDS)
    with client_of(control_plane.kubeconfig()) as admin:
        define(admin, *definitions)
        yield
        undefine(admin, *definitions)


@pytest.fixture
def kinds(client: Client) -> Kinds:
    return Kinds(client)


def made(client: Client, kinds: Kinds, namespace: str, item: JsonObject) -> ApiOwner:
    kind = known(kinds, item["apiVersion"], item["kind"])
    client.post(kind.path(namespace), item)
    return read_owner(client, kind, namespace, item["metadata"]["name"])


def known(kinds: Kinds, api_version: str, kind: str) -> ApiKind:
    found = kinds.find(api_version, kind)
    assert found is not None
    return found


def plain(api_version: str, kind: str, name: str, **spec: object) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("word", ["deploy", "deployment", "Deployments", "deployments.apps"])
def test_a_person_may_call_a_kind_by_any_of_its_names(kinds: Kinds, word: str) -> None:
    """Short, singular and plural names mean the kind, with or without the group."""
    found = kinds.called(word)

    assert found is not None
    assert ("apps/v1", "Deployment", True) == (found.api_version, found.kind, found.scalable)


def test_a_kind_is_found_by_a_version_that_is_not_preferred(kinds: Kinds) -> None:
    """A reference to another version of the group leads to the one the server prefers."""
    assert "apps/v1" == known(kinds, "apps/v1beta1", "StatefulSet").api_version
    assert "kubeflow.org/v1" == known(kinds, "kubeflow.org/v1alpha1", "Notebook").api_version


def test_a_kind_nobody_serves_is_not_known(kinds: Kinds) -> None:
    """Neither by its reference nor by a word."""
    assert kinds.find("example.org/v1", "Farm") is None
    assert kinds.find("example.com/v1", "Barn") is None
    assert kinds.called("barn") is None


def test_scalable_kinds_of_every_group_are_listed(kinds: Kinds) -> None:
    """Those of custom resources too, each with where it is listed."""
    scalable = {item.kind: item.everywhere for item in kinds.all() if item.scalable}

    assert "/apis/example.com/v1/farms" == scalable["Farm"]
    assert "/apis/apps/v1/statefulsets" == scalable["StatefulSet"]
    assert "/api/v1/replicationcontrollers" == scalable["ReplicationController"]
    assert "Notebook" not in scalable


def test_a_pod_leads_to_its_deployment(client: Client, kinds: Kinds, namespace: str) -> None:
    """The way up goes through the ReplicaSet."""
    top = client.post(group("apps/v1", "namespaces", namespace, "deployments"), deployment("w"))
    replica_set = controlled({**deployment("w-1"), "kind": "ReplicaSet"}, top)
    middle = client.post(group("apps/v1", "namespaces", namespace, "replicasets"), replica_set)
    below = made(client, kinds, namespace, controlled(pod("w-1-x"), middle))

    found = find_owner(client, kinds, below)

    assert f"Deployment {namespace}/w" == found.shown
    assert top["metadata"]["uid"] == found.uid
    assert found.scalable


def test_an_owner_that_was_replaced_is_not_followed(
    client: Client, kinds: Kinds, namespace: str
) -> None:
    """A reference with another UID means somebody who is gone."""
    top = client.post(group("apps/v1", "namespaces", namespace, "deployments"), deployment("w"))
    top["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    below = made(client, kinds, namespace, controlled(pod("lonely"), top))

    assert below == find_owner(client, kinds, below)


def test_what_kueue_admits_is_its_workload(client: Client, kinds: Kinds, namespace: str) -> None:
    """A Job, which cannot be scaled, leads to the Workload that it owns."""
    job_pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    job = plain("batch/v1", "Job", "j", template={"spec": job_pod})
    owner = client.post(group("batch/v1", "namespaces", namespace, "jobs"), job)
    workload = plain("kueue.x-k8s.io/v1beta1", "Workload", "job-j", active=True)
    made(client, kinds, namespace, controlled(workload, owner))
    below = made(client, kinds, namespace, controlled(pod("j-x", restartPolicy="Never"), owner))

    found = find_owner(client, kinds, below)

    assert ("Workload", "job-j") == (found.kind.kind, found.name)


@pytest.mark.parametrize(
    "api_version_and_kind", [("apps/v1", "Deployment"), ("example.com/v1", "Farm")]
)
def test_replicas_are_set_on_who_has_not_changed(
    client: Client, kinds: Kinds, namespace: str, api_version_and_kind: tuple[str, str]
) -> None:
    """The answer says what the owner is then, so that the next act can follow at once."""
    api_version, kind = api_version_and_kind
    item = {**deployment("w", 3), "apiVersion": api_version, "kind": kind}
    owner = made(client, kinds, namespace, item)

    scaled = bring_to(client, owner, 0)
    noted = write_note(client, scaled, '{"v":1}')

    assert 3 == owner.replicas
    assert not client.get(f"{owner.path}/scale")["spec"].get("replicas")
    assert (0, '{"v":1}') == (noted.replicas, noted.annotations[names.RELEASED])


@pytest.mark.parametrize("kind", ["Deployment", "Farm"])
def test_nothing_is_done_to_who_has_changed(
    client: Client, kinds: Kinds, namespace: str, kind: str
) -> None:
    """Neither to one with another version, nor to one of the same name that is another by now."""
    api_version = "apps/v1" if kind == "Deployment" else "example.com/v1"
    owner = made(
        client, kinds, namespace, {**deployment("w", 3), "apiVersion": api_version, "kind": kind}
    )
    client.patch(owner.path, {"metadata": {"labels": {"a": "b"}}}, PatchType.MERGE)
    now = read_owner(client, owner.kind, namespace, "w")
    other = now._replace(uid="00000000-0000-0000-0000-000000000000")

    with pytest.raises(ConflictError):
        set_replicas(client, owner, 0)
    with pytest.raises(ConflictError):
        write_note(client, owner, "{}")
    with pytest.raises(KubeError):
        set_replicas(client, other, 0)
    with pytest.raises(KubeError):
        write_note(client, other, "{}")
    assert now == read_owner(client, owner.kind, namespace, "w")


def test_a_notebook_is_stopped_by_its_annotation(
    client: Client, kinds: Kinds, namespace: str
) -> None:
    """As Kubeflow's own interface does it, and started by taking that away."""
    owner = made(client, kinds, namespace, plain("kubeflow.org/v1", "Notebook", "n", template={}))

    stopped = bring_to(client, owner, 0)
    started = bring_to(client, stopped, 1)

    assert (True, False, True) == (owner.active, stopped.active, started.active)
    assert 0 < read_moment(stopped.annotations[names.STOPPED], names.STOPPED)
    assert owner.stoppable
    assert not owner.scalable


def test_a_workload_is_stopped_by_its_spec(client: Client, kinds: Kinds, namespace: str) -> None:
    """An inactive Workload is what Kueue evicts."""
    item = plain("kueue.x-k8s.io/v1beta1", "Workload", "w", queueName="q")
    owner = made(client, kinds, namespace, item)

    stopped = bring_to(client, owner, 0)
    started = bring_to(client, stopped, 1)

    assert (True, False, True) == (owner.active, stopped.active, started.active)
    assert "q" == client.get(owner.path)["spec"]["queueName"]


def test_replicas_that_are_elsewhere_are_unknown(
    client: Client, kinds: Kinds, namespace: str
) -> None:
    """A kind whose scale means another field is left alone."""
    owner = made(client, kinds, namespace, plain("example.com/v1", "Herd", "h", size=3))

    assert owner.kind.scalable
    assert owner.replicas is None
    assert not owner.scalable


def test_a_note_is_taken_away(client: Client, kinds: Kinds, namespace: str) -> None:
    """None removes an annotation, and leaves those of others."""
    owner = made(client, kinds, namespace, deployment("w"))
    noted = annotate(client, owner, {names.RELEASED: "{}", names.KEEP_UNTIL: "x", "other": "y"})

    cleared = write_note(client, noted, None)

    assert {names.KEEP_UNTIL: "x"} == dict(cleared.annotations)
    assert "y" == client.get(owner.path)["metadata"]["annotations"]["other"]
