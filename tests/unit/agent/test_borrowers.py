"""Pods that may borrow above what others leave to them."""

import pytest

from agent.cluster.filter import filter_pod
from agent.fence import PodContext
from agent.model.pod import pods_on_node
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS
from tests.support.builders import pod

GROUND = PodContext(
    labels={names.MODE: "evict"}, annotations={}, highest=Mode.EVICT, cards=CARDS, units=Units()
)


@pytest.mark.parametrize(
    ("given", "limit", "promise"), [({}, 4, 4), ({names.KAI_GIVEN: "GPU-1"}, 8, 4)]
)
def test_the_limit_is_the_fence_and_the_request_is_the_promise(
    given: dict[str, str], limit: int, promise: int
) -> None:
    """
    Where the driver holds a pod of KAI's it may borrow up to its limit, and others leave its
    request to it.
    """
    said = {names.KAI_REQUEST: "4Gi", names.KAI_LIMIT: "8Gi", **given}
    annotations = {f"{names.KAI_OF_CONTAINER}main{end}": text for end, text in said.items()}
    asking = pod({"name": "main"}, annotations=annotations)
    found = read_pod_on_node(filter_pod(asking)[1], GROUND)
    uuid = CARDS[0].uuid

    assert limit * GIB == found.limit_on(uuid)
    assert promise * GIB == found.promise_on(uuid)
    assert "kai, an amount on each card" == found.measure
    assert not pods_on_node([found]).sharing
