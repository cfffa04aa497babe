"""Agents at addresses that a person names, past the API server, and what they know of days."""

import pytest

from gpufence.idle import OwnerRelease, OwnerReleases, write_owners
from gpufence.names import PROFILE_GROUP, PROFILES
from gpufence.need import write_need
from gpufence.need.profile import write_status
from gpufence.snapshot import write_snapshot
from kubectl_gpufence.reader import AddressError, page
from tests.support.builders import NEED_KEY, need_summary, node_need, owner_need
from tests.support.plugin import (
    ABSENT,
    AGENT,
    NODE,
    Desk,
    listed,
    snapshot,
)
from tests.support.servers import reply


def test_an_agent_is_asked_at_its_address(desk: Desk) -> None:
    """Where an address is named, the API server's proxy is not needed."""
    desk.get(AGENT, ABSENT)
    desk.get("/v1/snapshot", reply(write_snapshot(snapshot(version="9.9.9")).encode()))

    said = desk.run("inspect", NODE, "--agents", f"{NODE}={desk.server.url}/")

    assert "9.9.9" in said.out


def test_the_agent_of_another_node_is_no_answer(desk: Desk) -> None:
    """Where addresses are mixed up, nothing is shown as measured on the wrong node."""
    desk.get("/v1/snapshot", reply(write_snapshot(snapshot()).encode()))

    said = desk.run("top", "nodes", "--agents", f"gpu-2={desk.server.url}")

    assert f"note: 1 agent (gpu-2): the agent of node {NODE} is at its address" in said.err


def test_the_environment_names_agents_too(desk: Desk) -> None:
    """Several stand in one variable, and a call that names some itself leaves it aside."""
    desk.environ["GPUFENCE_AGENTS"] = f"other=http://127.0.0.1:9, {NODE}={desk.server.url}"
    desk.get("/v1/snapshot", reply(write_snapshot(snapshot(version="9.9.9")).encode()))

    found = desk.run("top", "nodes", "-o", "json").json

    assert ["1 agent (other)"] == [note.partition(":")[0] for note in found["notes"]]


def test_the_controller_is_asked_at_its_address(desk: Desk) -> None:
    """Its page is read past the API server, too."""
    said = OwnerRelease("team-a", "apps/v1", "Deployment", "worker", state="released")
    page_of = OwnerReleases(leader=True, at=0.0, brake="the API server is away", owners=(said,))
    desk.get("/v1/owners", reply(write_owners(page_of).encode()))
    desk.get("/apis", reply({"groups": []}))

    shown = desk.run("idle", "--controller", desk.server.url)

    assert "deployment/worker" in shown.out
    assert "note: no owner is released: the API server is away" in shown.err


@pytest.mark.parametrize(
    ("page_of", "note"),
    [
        (b"<html>", "the controller says nothing: its answer is no snapshot"),
        (
            write_owners(OwnerReleases(leader=False, at=0.0)).encode(),
            "no controller leads at the moment",
        ),
    ],
)
def test_a_controller_that_cannot_be_heard_is_noted(desk: Desk, page_of: bytes, note: str) -> None:
    """What agents say is shown all the same."""
    desk.get("/v1/owners", reply(page_of))
    desk.get("/apis", reply({"groups": []}))

    shown = desk.run("idle", "--controller", desk.server.url)

    assert "trainer-0" in shown.out
    assert note in shown.err


def test_an_address_that_does_not_answer_is_named() -> None:
    """Nobody there is an error with the address in it."""
    with pytest.raises(
        AddressError, match=r"/v1/owners at http://127\.0\.0\.1:9: Connection refused"
    ):
        page("http://127.0.0.1:9/v1/owners", 2.0)


def test_what_is_newer_than_the_profiles_is_noted(desk: Desk) -> None:
    """The page of days has what agents know by now; the table, what the controller has written."""
    told = owner_need(1), owner_need(1, NEED_KEY._replace(name="newcomer"))
    profile = {
        "metadata": {"namespace": "vision", "name": "deployment-classifier", "generation": 1},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}},
        "status": write_status([need_summary()], 1),
    }
    desk.get(f"/apis/{PROFILE_GROUP}/{PROFILES}", listed(profile))
    desk.get(AGENT.replace("snapshot", "need"), reply(write_need(node_need(*told)).encode()))
    said = desk.run("recommend", "-A", "-o", "html")

    assert "note: 1 owner measured, and in no profile yet: vision/newcomer\n" in said.err
