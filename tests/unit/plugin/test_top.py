"""What the tables of the golden files leave open: JSON, and pods that are not asked for."""

from dataclasses import replace

import pytest

from gpufence.capped import Ending
from gpufence.snapshot import EndedRow, PodActivityRow, PodRow
from kubectl_gpufence.card_lines import CARD_FIELDS, NODE_FIELDS, card_lines, node_lines
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pod_lines import POD_FIELDS, idle_for, pod_lines, verdict_on
from kubectl_gpufence.view import records
from tests.support.plugin import (
    CARD,
    agent,
    card_row,
    cluster,
    pod_row,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.plugin_cases import odd, odd_cards, silent


def test_unknown_is_null_in_json() -> None:
    """Programs see null where people see a question mark."""
    items = {item["name"]: item for item in records(POD_FIELDS, pod_lines(odd(), ""))}

    assert None is items["trainer-0"]["used"]
    assert (None, None, "measuring") == tuple(
        items["hami"][key] for key in ("card", "processes", "outcome")
    )
    assert ("2150Mi", "holding") == (items["observed"]["told"], items["observed"]["outcome"])
    assert "" == items["thief"]["injected"]


def test_json_of_cards_and_nodes_tells_what_is_not_known() -> None:
    """A card without an agent has a size and nothing else."""
    cards = records(CARD_FIELDS, card_lines(silent()))
    [card] = [item for item in cards if item["node"] == "cpu"]
    nodes = {item["node"]: item for item in records(NODE_FIELDS, node_lines(odd_cards()))}

    assert ("15360Mi", None, None, None) == tuple(
        card[key] for key in ("total", "used", "committed", "stale")
    )
    assert (None, None, "silent") == tuple(
        nodes["gpu-4"][key] for key in ("total", "version", "agent")
    )
    assert "held back: agent starting" == nodes["gpu-2"]["agent"]


_UNFENCED = "card 1: GB10 (GPU-b) has no memory of its own but shares the machine's"


def test_a_card_that_is_measured_has_no_other_cards_trouble() -> None:
    """What a node says of a card without memory of its own is no state of those that are fenced."""
    mixed = cluster(agents=(agent(snapshot(trouble=_UNFENCED)),))

    assert ["ok"] == [line.state for line in card_lines(mixed)]


def test_a_card_that_is_not_measured_has_its_nodes_trouble() -> None:
    """Where no card can be read, each of them says why."""
    blind = snapshot(cards=(card_row(used_bytes=None, free_bytes=None),), trouble="NVML is gone")
    lines = card_lines(cluster(agents=(agent(blind),)))

    assert ["NVML is gone"] == [line.state for line in lines]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (cluster(seen_pod(), may_ask=False), "may not ask"),
        (cluster(seen_pod(), agents=(agent(None, "not yours", denied=True),)), "may not ask"),
        (cluster(seen_pod()), "no agent"),
        (cluster(seen_pod(mode=None), agents=(agent(snapshot()._replace(pods=())),)), "not fenced"),
    ],
)
def test_why_nothing_is_measured_is_said(found: ClusterAnswers, said: str) -> None:
    """What was not asked is no fact: a person without the right reads that, and of no silence."""
    assert [said] == [verdict_on(line).text for line in pod_lines(found, "")]


OOM = Ending("trainer", 1, waiting="CrashLoopBackOff", out_of_memory="CUDA out of memory")
ENDED = EndedRow("trainer", "", "too small", certain=True)


@pytest.mark.parametrize(
    ("endings", "row", "word"),
    [
        ((OOM,), None, "capped"),
        ((OOM._replace(waiting=""),), None, "no agent"),
        ((OOM._replace(refused="no"),), None, "cannot start"),
        ((), pod_row(ended=(ENDED,)), "too small"),
        ((), pod_row(ended=(ENDED._replace(certain=False),))._replace(uses=()), "perhaps capped"),
        ((OOM,), pod_row(), "within"),
        ((OOM,), pod_row()._replace(uses=()), "crash loop"),
        ((OOM._replace(waiting=""),), pod_row()._replace(uses=()), "holds nothing"),
        ((), pod_row(use_row(outcome="evict"), ended=(ENDED,)), "evicting"),
    ],
)
def test_an_end_for_want_of_memory_is_the_verdict(
    endings: tuple[Ending, ...], row: PodRow | None, word: str
) -> None:
    """Its agent knows whether a pod has run well since; without one its status alone says it."""
    agents = () if row is None else (agent(snapshot(row)),)
    found = cluster(replace(seen_pod(), endings=endings), agents=agents)

    assert [word] == [verdict_on(line).text.partition(",")[0] for line in pod_lines(found, "")]


def test_a_pod_that_starts_and_fails_again_and_again_is_not_called_busy() -> None:
    """Its processes come and go, which its agent takes for loading."""
    doing = PodActivityRow("busy", 0.0, "Loading")
    row = pod_row(activity=doing)._replace(uses=())
    found = cluster(replace(seen_pod(), endings=(OOM,)), agents=(agent(snapshot(row)),))

    assert ["-"] == [idle_for(line).text for line in pod_lines(found, "")]


def test_another_namespaces_pods_stay_out() -> None:
    """What an agent tells of other namespaces is not what was asked for."""
    rows = (pod_row(), pod_row(uid="u9", namespace="team-b", name="other"))
    lines = pod_lines(cluster(agents=(agent(snapshot(*rows)),)), "team-a")

    assert ["trainer-0"] == [line.name for line in lines]


def test_a_successor_of_the_same_name_is_another_pod() -> None:
    """Use is attributed by UID alone."""
    lines = pod_lines(cluster(seen_pod(uid="new"), agents=(agent(snapshot()),)), "team-b")

    assert ["measuring"] == [line.state for line in lines]


def test_programs_read_what_holds_the_pods_of_a_card() -> None:
    """Each fence is counted once for each pod, and a card of which no agent says has null."""
    rows = (pod_row(use_row(fence="driver")), pod_row(use_row(fence="driver"), uid="u2"))
    items = records(CARD_FIELDS, card_lines(cluster(agents=(agent(snapshot(*rows)),))))
    unseen = records(CARD_FIELDS, card_lines(silent()))

    assert [(CARD, {"driver": 2})] == [(item["uuid"], item["fences"]) for item in items]
    assert {None} == {item["fences"] for item in unseen}
