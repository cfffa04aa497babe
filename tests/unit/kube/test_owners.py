"""What is read of owners, kinds and Events, whatever the objects look like."""

from typing import Any

import pytest

from gpufence import names
from kube.events import (
    EventPlace,
    EventText,
    EventTimes,
    Regarding,
    Reporter,
    make_event,
    place_of,
)
from kube.kinds import ApiKind, read_kinds
from kube.owners import ApiOwner, Reference, controller_of, owner_of

DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)
PODS = ApiKind("v1", "Pod", "pods")
NOTEBOOKS = ApiKind("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS = ApiKind("kueue.x-k8s.io/v1beta1", "Workload", "workloads", scalable=True)


def owner(kind: ApiKind, spec: Any = None, **annotations: Any) -> ApiOwner:
    metadata = {"namespace": "team", "name": "w", "annotations": annotations}
    return owner_of(kind, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize("replicas", [None, "3", True, 1.5])
def test_a_number_that_is_none_is_unknown(replicas: object) -> None:
    """And what is unknown is not scaled."""
    found = owner(DEPLOYMENTS, {"replicas": replicas})

    assert found.replicas is None
    assert not found.scalable


def test_what_can_be_scaled_has_a_number_and_the_subresource() -> None:
    """Kueue's Workloads and Notebooks are stopped instead."""
    kinds = (DEPLOYMENTS, PODS, WORKLOADS, NOTEBOOKS)
    found = [owner(kind, {"replicas": 1}) for kind in kinds]

    assert [True, False, False, False] == [item.scalable for item in found]
    assert [False, False, True, True] == [item.stoppable for item in found]


def test_whether_it_is_active_is_said_in_a_way_of_its_own() -> None:
    """A Workload by its spec, a Notebook by an annotation, all others are."""
    stopped = {names.STOPPED: "x"}

    assert [False, True] == [owner(WORKLOADS, {"active": word}).active for word in (False, True)]
    assert [False, True] == [owner(NOTEBOOKS, **stopped).active, owner(NOTEBOOKS).active]
    assert owner(DEPLOYMENTS, {"active": False}, **stopped).active


def test_words_of_others_are_left_out() -> None:
    """Annotations that are no text, too."""
    said = {names.WAKE: "manual", names.STOPPED: "x", "other": "y", names.RELEASED: 1}

    assert {names.WAKE: "manual", names.STOPPED: "x"} == owner(DEPLOYMENTS, **said).annotations


def test_an_owner_tells_where_it_is() -> None:
    """As a path, and for people; those of the core have a path of their own."""
    found = owner(DEPLOYMENTS)

    assert "/apis/apps/v1/namespaces/team/deployments/w" == found.path
    assert "Deployment team/w" == found.shown
    assert "/api/v1/namespaces/team/pods/w" == owner(PODS).path
    assert ("/apis/apps/v1/deployments", "/api/v1/pods") == (
        DEPLOYMENTS.everywhere,
        PODS.everywhere,
    )


def test_the_controller_is_the_one_that_says_so() -> None:
    """Other owners, and what is no list, count as none."""
    plain = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}
    controls = {**plain, "kind": "B", "controller": True}

    assert Reference("v1", "B", "a", "1") == controller_of({"ownerReferences": [plain, controls]})
    assert controller_of({"ownerReferences": [plain, "x"]}) is None
    assert controller_of({"ownerReferences": "x"}) is None


def test_kinds_are_namespaced_and_know_whether_they_scale() -> None:
    """Subresources are no kinds; what is odd is left out."""
    found = read_kinds(
        "a/v1",
        {
            "resources": [
                {"name": "xs", "kind": "X", "namespaced": True, "shortNames": ["ex", 1]},
                {"name": "xs/scale", "kind": "Scale", "namespaced": True},
                {"name": "xs/status", "kind": "X", "namespaced": True},
                {"name": "ys", "kind": "Y", "namespaced": True, "singularName": ""},
                {"name": "zs", "kind": "Z", "namespaced": False},
                "odd",
            ]
        },
    )

    assert [("X", True), ("Y", False)] == [(kind.kind, kind.scalable) for kind in found]
    assert {"xs", "x", "ex"} == found[0].called
    assert () == read_kinds("a/v1", {"resources": None})


def test_an_event_of_a_pod_has_no_host() -> None:
    """Where it is said by one that is on no node in particular."""
    about = Regarding("v1", "Pod", "team", "a", "u")
    place = place_of(about, "gpufence-controller", "1")
    said = EventText("R", "m", warning=False)
    made = make_event(about, said, Reporter("c", "i"), place, EventTimes("t", "t"))

    assert EventPlace("team", "a.1") == place
    assert ("Normal", {"component": "c"}) == (made["type"], made["source"])
    assert 1 == made["count"]


def test_an_event_of_the_cluster_is_in_the_default_namespace() -> None:
    """Under a name that is one, with who says it and where."""
    about = Regarding("v1", "Node", "", "N" * 300, "u")
    place = place_of(about, "gpufence-agent", "1")
    made = make_event(
        about, EventText("R", "m"), Reporter("c", "i", "h"), place, EventTimes("t", "t", 2)
    )

    assert EventPlace("default", "gpufence-agent.1") == place
    assert {"component": "c", "host": "h"} == made["source"]
    assert "namespace" not in made["involvedObject"]


def test_an_owner_whom_nobody_can_be_called_is_cut_short() -> None:
    """The API server takes any text in a reference."""
    reference = {"kind": "Job", "name": "n" * 2**18, "uid": "u", "controller": True}
    found = controller_of({"ownerReferences": [reference]})

    assert Reference("", "Job", "n" * 320, "u") == found
