"""Pods' conditions on their way to the API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.concerns.activity.concern import ConditionWriter
from agent.concerns.activity.model import Evidence, IdleCondition, IdleStatus
from gpufence import names
from tests.http.agent.builders import POD, agent_of, refusal, settings
from tests.support.servers import ApiServer, reply

PATCHED = f"PATCH {POD}/status"
OTHER = f"PATCH {POD.rpartition('/')[0]}/other/status"
OK = reply({"kind": "Pod"})


def said(
    status: IdleStatus = IdleStatus.TRUE, name: str = "train-1", uid: str = "u"
) -> IdleCondition:
    return IdleCondition("team-a", name, uid, status, Evidence.NOTHING, "no kernels")


@contextmanager
def writing(server: ApiServer) -> Iterator[ConditionWriter]:
    writer = ConditionWriter(settings())
    with agent_of(server, before=lambda agent: agent.when_acting(writer.start)):
        yield writer
        writer.stop()


def body(server: ApiServer, key: str = PATCHED, position: int = -1) -> dict[str, Any]:
    found = server.seen(key)[position].json
    assert isinstance(found, dict)
    return found


def test_one_condition_of_the_very_pod_is_changed(server: ApiServer) -> None:
    """The patch names the pod's UID and one condition, and is merged by its type."""
    server.on(PATCHED, OK)
    with writing(server) as writer:
        writer.write([said()])
        server.wait_for(PATCHED, 1)
    sent = body(server)
    (condition,) = sent["status"].pop("conditions")

    assert {"metadata": {"uid": "u"}, "status": {}} == sent
    assert (names.GPU_IDLE, "True", "NoKernels", "no kernels") == tuple(
        condition[key] for key in ("type", "status", "reason", "message")
    )
    assert condition["lastTransitionTime"].endswith("Z")


TROUBLE = {
    "gone": refusal(404),
    "another": refusal(409, "Conflict"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_with_one_pod_is_no_trouble_of_the_next(server: ApiServer, trouble: str) -> None:
    """A pod that is another one by now is patched once, and the next pod has its turn."""
    server.on(PATCHED, TROUBLE[trouble])
    server.on(OTHER, OK)
    with writing(server) as writer:
        writer.write([said(), said(name="other", uid="o")])
        server.wait_for(OTHER, 1)

    assert 1 == len(server.seen(PATCHED))
