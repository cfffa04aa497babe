"""What is kept of pods where there are thousands of them."""

import pytest

from gpufence import names
from gpufence.cards import write_cards
from kubectl_gpufence.cluster_view import see_node
from kubectl_gpufence.pods import (
    AlikePlans,
    asked_of,
    is_ready,
    name_of,
    node_of,
    see_pod,
    slim,
    status_port,
)
from tests.support.builders import gpushare, pod
from tests.support.plugin import raw_node, raw_pod, seen_node


def test_a_slim_pod_declares_and_tells_the_same() -> None:
    """What the webhook wrote has been read, and notes of others say nothing here."""
    said = {names.MEMORY: "2Gi", "example.com/note": "of no use", names.GPUSHARE_CARD_INDEX: "0"}
    raw = raw_pod(gpushare("main", 3))
    raw["metadata"]["annotations"] |= said
    whole = see_pod(raw, seen_node().gpu)
    thin = slim(whole)

    assert {names.MEMORY, names.GPUSHARE_CARD_INDEX} == set(thin.annotations)
    assert (whole.declaration, whole.limit_bytes, whole.told_bytes) == (
        thin.declaration,
        thin.limit_bytes,
        thin.told_bytes,
    )


def test_plans_that_are_alike_are_read_once() -> None:
    """Equal texts give the very same plan, and others their own."""
    plans = AlikePlans()
    one, other = raw_pod(), raw_pod(gpushare("main", 2))
    first = see_pod(one, None, plans=plans).recorded

    assert first is see_pod(one, None, plans=plans).recorded
    assert first != see_pod(other, None, plans=plans).recorded
    assert not see_pod(pod(), None, plans=plans).recorded.trouble


def test_no_more_plans_are_remembered_than_stand_together() -> None:
    """Tenants decide how many there are."""
    plans = AlikePlans()
    first = plans({names.PLAN: "0"})
    for number in range(1, AlikePlans.MOST + 1):
        plans({names.PLAN: str(number)})

    assert first is not plans({names.PLAN: "0"})


def test_no_more_settings_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plans read the same when all that is alike was forgotten between them."""
    monkeypatch.setattr(AlikePlans, "MOST_SETTINGS", 1)
    pods = [raw_pod(gpushare("main", amount)) for amount in (2, 3)]
    plans = AlikePlans()

    assert [see_pod(item, None).recorded for item in pods] == [
        see_pod(item, None, plans=plans).recorded for item in pods
    ]


def test_cards_are_kept_once_where_they_are_what_the_node_offers() -> None:
    """
    What an agent has stated stands beside what is worked out from it, and is the same; of a node
    without any it alone is known.
    """
    node = seen_node()
    assert node.gpu is not None
    assert node.cards is not None
    raw = raw_node(count=0)
    raw["metadata"]["annotations"] = {names.CARDS: write_cards(node.cards._replace(cards=()))}
    raw["status"] = {}
    bare = see_node(raw)

    assert node.cards.cards is node.gpu.cards
    assert bare.cards is not None
    assert (None, ()) == (bare.gpu, bare.cards.cards)


@pytest.mark.parametrize("ready", [True, False])
def test_who_is_asked_is_kept_as_far_as_asking_goes(*, ready: bool) -> None:
    """Of an agent's pod four things are needed."""
    port = {"name": "status", "containerPort": 9090}
    raw = {
        "metadata": {"name": "agent-x", "uid": "1"},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "ports": [port]}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    kept = asked_of(raw)

    assert ("agent-x", "n", ready, 9090) == (
        name_of(kept),
        node_of(kept),
        is_ready(kept),
        status_port(kept),
    )
