"""Pods' conditions on their way to the API server."""

from typing import Any

import pytest

from agent.model.pod import PodCondition
from gpufence import names
from tests.http.agent.builders import POD, agent_of, refusal
from tests.support.servers import ApiServer, reply

PATCHED = f"PATCH {POD}/status"
OTHER = f"PATCH {POD.rpartition('/')[0]}/other/status"
OK = reply({"kind": "Pod"})


IDLE = PodCondition("team-a", "train-1", "u", names.GPU_IDLE, "True", "NoKernels", "no kernels")
MEMORY = IDLE._replace(kind=names.GPU_MEMORY, reason="WithinLimit", turned=False)


def body(server: ApiServer, key: str = PATCHED, position: int = -1) -> dict[str, Any]:
    found = server.seen(key)[position].json
    assert isinstance(found, dict)
    return found


def test_one_condition_of_the_very_pod_is_changed(server: ApiServer) -> None:
    """The patch names the pod's UID and one condition, and is merged by its type."""
    server.on(PATCHED, OK)
    with agent_of(server) as agent:
        agent.say([IDLE])
        server.wait_for(PATCHED, 1)
    sent = body(server)
    (condition,) = sent["status"].pop("conditions")

    assert {"metadata": {"uid": "u"}, "status": {}} == sent
    assert (names.GPU_IDLE, "True", "NoKernels", "no kernels") == tuple(
        condition[key] for key in ("type", "status", "reason", "message")
    )
    assert condition["lastTransitionTime"].endswith("Z")


def test_all_conditions_that_are_due_of_a_pod_go_in_one_request(server: ApiServer) -> None:
    """Each has its own times; one whose status is as before has turned at no new time."""
    server.on(PATCHED, OK)
    with agent_of(server) as agent:
        agent.say([IDLE, MEMORY])
        server.wait_for(PATCHED, 1)
    idle, memory = body(server)["status"]["conditions"]

    assert [names.GPU_IDLE, names.GPU_MEMORY] == [idle["type"], memory["type"]]
    assert memory["lastProbeTime"]
    assert "lastTransitionTime" not in memory


TROUBLE = {
    "gone": refusal(404),
    "another": refusal(409, "Conflict"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_with_one_pod_is_no_trouble_of_the_next(server: ApiServer, trouble: str) -> None:
    """A pod that is another one by now is patched once, and the next pod has its turn."""
    server.on(PATCHED, TROUBLE[trouble])
    server.on(OTHER, OK)
    with agent_of(server) as agent:
        agent.say([IDLE, IDLE._replace(name="other", uid="o")])
        server.wait_for(OTHER, 1)

    assert 1 == len(server.seen(PATCHED))
