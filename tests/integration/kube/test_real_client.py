"""Our reading of the API, held against a real API server."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kube import (
    Cause,
    Client,
    ClientSettings,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidRequestError,
    JsonObject,
    NotFoundError,
    PatchType,
    ServerError,
    ThrottledError,
    connect,
    core,
    group,
)
from kube.lists import Page, collect_pages
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import (
    budget,
    config_map,
    config_maps,
    event,
    events,
    eviction,
    name_of,
    pod,
)
from tests.support.etcd import compact


def running_pod(client: Client, namespace: str, name: str, node: str = "nowhere") -> JsonObject:
    """Make a pod that evictions take seriously: bound to a node, running and unready."""
    path = core("namespaces", namespace, "pods")
    made = client.post(path, pod(name, nodeName=node))
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    client.patch(f"{path}/{name}/status", status, PatchType.MERGE)
    return made


def test_pages_make_one_list(client: Client, namespace: str) -> None:
    """A list in pages of two is the list."""
    path = config_maps(namespace)
    for number in range(5):
        client.post(path, config_map(f"c{number}"))

    listing = client.list(path, page_size=2)

    assert [f"c{number}" for number in range(5)] == [name_of(item) for item in listing.items]


def test_a_compacted_list_begins_anew(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    """When etcd forgets a list between its pages, the answer is one whole newer list."""
    # The API server keeps no memory of events, so every page of theirs comes from etcd itself.
    path = events(namespace)
    for number in range(4):
        client.post(path, event(namespace, f"e{number}"))
    pages: list[Mapping[str, str | int]] = []

    def read(query: Mapping[str, str | int]) -> Page[str]:
        if len(pages) == 1:
            client.post(path, event(namespace, "e4"))
            compact(control_plane.folder)
        pages.append(query)
        return client.page(path, name_of, query)

    listing = collect_pages(read, path, page_size=2)

    assert [f"e{number}" for number in range(5)] == listing.items
    assert 5 == len(pages)


def test_an_expired_continue_is_gone(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    """The server's word for a forgotten version is 410."""
    path = events(namespace)
    for number in range(2):
        client.post(path, event(namespace, f"e{number}"))
    token = client.get(path, {"limit": 1})["metadata"]["continue"]
    client.post(path, event(namespace, "later"))
    compact(control_plane.folder)

    with pytest.raises(GoneError, match="410 Expired"):
        client.get(path, {"limit": 1, "continue": token})


def test_refusals_of_the_server_have_their_classes(client: Client, namespace: str) -> None:
    """Absent, present twice, changed meanwhile and malformed are told apart."""
    path = config_maps(namespace)
    made = client.post(path, config_map("a"))
    client.patch(f"{path}/a", [{"op": "add", "path": "/data", "value": {"k": "v"}}])

    with pytest.raises(NotFoundError, match='404 NotFound: configmaps "none" not found'):
        client.get(f"{path}/none")
    with pytest.raises(ConflictError) as twice:
        client.post(path, config_map("a"))
    with pytest.raises(ConflictError) as stale:
        client.put(f"{path}/a", made)
    with pytest.raises(InvalidRequestError, match="422 Invalid"):
        client.post(path, config_map("No Name"))
    with pytest.raises(InvalidRequestError, match="400 BadRequest"):
        client.post(path, event(namespace, "no-config-map"))

    assert ("AlreadyExists", "Conflict") == (twice.value.reason, stale.value.reason)


def test_a_token_nobody_issued_is_forbidden(
    control_plane: ControlPlane, tmp_path: Path, namespace: str
) -> None:
    """401 is the class of 403, with its own status."""
    (tmp_path / "token").write_text("nobody-issued-this")
    settings = ClientSettings(
        server=control_plane.url,
        ca_file=control_plane.ca_file,
        token_file=tmp_path / "token",
    )
    with connect(settings) as nobody, pytest.raises(ForbiddenError) as caught:
        nobody.get(config_maps(namespace))

    assert (401, "Unauthorized") == (caught.value.status, caught.value.reason)


def test_a_budget_that_forbids_is_throttling_with_a_cause(client: Client, namespace: str) -> None:
    """An eviction that a budget forbids comes back as 429 with its cause."""
    made = running_pod(client, namespace, "p")
    client.post(group("policy/v1", "namespaces", namespace, "poddisruptionbudgets"), budget("b"))

    with pytest.raises(ThrottledError) as caught:
        client.post(
            core("namespaces", namespace, "pods", "p", "eviction"),
            eviction("p", made["metadata"]["uid"]),
        )

    assert ["DisruptionBudget"] == [cause.reason for cause in caught.value.causes]
    assert isinstance(caught.value.causes[0], Cause)


def test_two_budgets_are_trouble_of_the_server(client: Client, namespace: str) -> None:
    """Several budgets for one pod are refused with 500."""
    made = running_pod(client, namespace, "p")
    for name in ("b", "c"):
        path = group("policy/v1", "namespaces", namespace, "poddisruptionbudgets")
        client.post(path, budget(name))

    with pytest.raises(ServerError, match="more than one PodDisruptionBudget"):
        client.post(
            core("namespaces", namespace, "pods", "p", "eviction"),
            eviction("p", made["metadata"]["uid"]),
        )


def test_another_uid_is_a_conflict(client: Client, namespace: str) -> None:
    """An eviction of a pod that was replaced under its name hits nobody."""
    running_pod(client, namespace, "p")

    with pytest.raises(ConflictError) as caught:
        client.post(
            core("namespaces", namespace, "pods", "p", "eviction"),
            eviction("p", "00000000-0000-0000-0000-000000000000"),
        )

    assert "Conflict" == caught.value.reason


def test_an_eviction_is_accepted(client: Client, namespace: str) -> None:
    """A permitted eviction answers with a Status that says Success."""
    made = running_pod(client, namespace, "p")

    answer = client.post(
        core("namespaces", namespace, "pods", "p", "eviction"),
        eviction("p", made["metadata"]["uid"]),
    )

    assert ("Status", "Success") == (answer["kind"], answer["status"])
