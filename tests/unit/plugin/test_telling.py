"""
What the tables and stories of the golden files leave open: JSON, rare words, doubts.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.explain.advice import what_will_be
from kubectl_gpufence.explain.chapters import explanation
from kubectl_gpufence.explain.injected import ShareFigures, formula
from kubectl_gpufence.explain.story import PodStory
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.report.owners import owner_json, owner_lines, since
from kubectl_gpufence.table import Display
from kubectl_gpufence.top.cards import card_json, card_lines, node_json, node_lines
from kubectl_gpufence.top.pods import pod_json, pod_lines
from kubectl_gpufence.verdicts import VERDICTS, verdict, what_follows
from tests.support.builders import container as pod_container
from tests.support.builders import gpushare
from tests.support.plugin import (
    agent,
    pod_row,
    raw_pod,
    scene,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.plugin_cases import explained, odd, odd_cards, reported, silent


def test_unknown_is_null_in_json() -> None:
    """
    Programs see null where people see a question mark.
    """
    found = {item["name"]: item for item in map(pod_json, pod_lines(odd(), ""))}

    assert None is found["trainer-0"]["used"]
    assert (None, None, "not seen yet") == tuple(
        found["hami"][key] for key in ("card", "processes", "outcome")
    )
    assert ("2150Mi", "holding") == (found["observed"]["told"], found["observed"]["outcome"])
    assert "" == found["thief"]["injected"]


def test_json_of_cards_and_nodes_tells_what_is_not_known() -> None:
    """
    A card without an agent has a size and nothing else.
    """
    [card] = [item for item in map(card_json, card_lines(silent())) if item["node"] == "cpu"]
    found = {item["node"]: item for item in map(node_json, node_lines(odd_cards()))}

    assert ("15360Mi", None, None, None) == tuple(
        card[key] for key in ("total", "used", "committed", "stale")
    )
    assert (None, None, "silent") == tuple(
        found["gpu-4"][key] for key in ("total", "version", "agent")
    )
    assert "braked" == found["gpu-2"]["agent"]


def test_another_namespaces_pods_stay_out() -> None:
    """
    What an agent tells of other namespaces is not what was asked for.
    """
    rows = (pod_row(), pod_row(uid="u9", namespace="team-b", name="other"))

    assert ["trainer-0"] == [
        line.name for line in pod_lines(scene(agents=(agent(snapshot(*rows)),)), "team-a")
    ]


def test_a_successor_of_the_same_name_is_another_pod() -> None:
    """
    Use is attributed by UID alone.
    """
    found = pod_lines(scene(seen_pod(uid="new"), agents=(agent(snapshot()),)), "team-b")

    assert ["not seen yet"] == [line.state for line in found]


def test_reports_name_their_time() -> None:
    """
    Whoever reads a peak knows since when it counts.
    """
    assert ("2026-01-02T00:00:00Z", "2026-01-02T02:00:00Z") == since(reported())
    assert ("", "") == since(scene())
    assert [4, None] == [
        item["pods"] if item["name"] == "greedy" else item["suggested"]
        for item in map(owner_json, owner_lines(reported(), ""))
        if item["name"] in ("greedy", "idle")
    ]


@pytest.mark.parametrize("outcome", sorted(VERDICTS))
def test_every_word_of_the_agent_has_a_meaning(outcome: str) -> None:
    """
    Each outcome is a short word in tables and a sentence in stories.
    """
    use = use_row(outcome=outcome)

    assert verdict(pod_row(use), use).text
    assert what_follows(pod_row(use), use).endswith(".")


def test_a_word_of_a_newer_agent_is_shown_as_it_is() -> None:
    """
    What this plugin does not know it neither hides nor explains away.
    """
    use = use_row(outcome="dancing")

    assert "dancing" == verdict(pod_row(use), use).text
    assert 'says "dancing"' in what_follows(pod_row(use), use)


def test_nobody_is_threatened_with_an_eviction_below_mode_evict() -> None:
    """
    In mode cap a pod over its limit stays, and is told so.
    """
    use = use_row(outcome="holding", over_seconds=3.0, due_seconds=27.0)

    assert "over 3s, due in 27s" == verdict(pod_row(use, mode="cap"), use).text
    assert "It is over its limit; in mode cap it stays." == what_follows(
        pod_row(use, mode="cap"), use
    )


def test_a_hold_without_an_end_is_not_dated() -> None:
    """
    Where the agent does not say when, nobody else does.
    """
    use = use_row(outcome="holding", over_seconds=3.0)

    assert "It is over its limit. It is evicted unless it gives memory back." == what_follows(
        pod_row(use), use
    )


def test_what_follows_needs_a_measurement() -> None:
    """
    Without a snapshot nothing is foretold.
    """
    assert [] == list(what_will_be(PodStory(seen_pod(), "evict")))


def test_a_rule_of_another_version_is_not_guessed() -> None:
    """
    Where no known sum gives A, the plugin says so and still divides by the card.
    """
    figures = ShareFigures(3 * GIB, 512 * MIB, 15 * GIB, 1000 * MIB, 1)
    lines = formula(figures, Headroom.AUTO)

    assert "A = (by a rule this plugin does not know) = 1000Mi" == lines[1]
    assert "F = A / T = 0.065104" == lines[2]


def test_without_a_card_there_is_no_fraction() -> None:
    """
    F is of a card, and nobody knows which.
    """
    assert 2 == len(formula(ShareFigures(3 * GIB, 512 * MIB, None, 1, 1), Headroom.FACTOR))


def test_a_plan_without_a_card_says_so() -> None:
    """
    Fractions that wait for a binding are empty, and the story tells why.
    """
    raw = raw_pod(bound=False)
    del raw["metadata"]["annotations"][names.CARD]
    pod = see_pod(raw, None)

    assert any("No card's size was known" in line for line in explained(pod))


def test_different_limits_of_webhook_and_plugin_are_both_told() -> None:
    """
    A plan made with other units than the node's is no secret.
    """
    pod = seen_pod()
    plan = pod.recorded.plan
    assert plan is not None
    changed = replace(pod, recorded=replace(pod.recorded, plan=plan._replace(limit_bytes=GIB + 1)))
    unplanned = replace(pod, recorded=replace(pod.recorded, plan=plan._replace(limit_bytes=None)))

    told_lines = "\n".join(explained(changed))
    assert "the webhook reckoned with 1024Mi (1073741825 bytes) on each card" in told_lines
    assert not any("reckoned" in line for line in explained(unplanned))


def test_a_plan_that_is_gone_is_missed() -> None:
    """
    A pod that the webhook has seen bears a plan.
    """
    raw = raw_pod()
    del raw["metadata"]["annotations"][names.PLAN]

    assert any("gpufence.io/plan is missing" in line for line in explained(see_pod(raw, None)))


def test_containers_without_a_gpu_declare_nothing() -> None:
    """
    Only those that ask for GPU memory are listed.
    """
    pod = seen_pod(gpushare("main"), pod_container("other"))

    assert not any("container other asks" in line for line in explained(pod))


def test_where_only_the_webhook_knew_the_card_its_limit_is_told() -> None:
    """
    A share of a card that we may not see is an amount in the plan alone.
    """
    raw = raw_pod(pod_container("main"), annotations={names.KAI_FRACTION: "0.5"})
    text = "\n".join(explained(see_pod(raw, None)))

    assert "the webhook reckoned with 7680Mi on each card (kai)" in text
    assert "no limit" not in text


def test_words_of_the_namespace_are_told() -> None:
    """
    What a namespace said at creation stands in the plan, and in the story.
    """
    pod = seen_pod(namespace={names.MAX_MEMORY: "2Gi"})

    assert any(f"{names.MAX_MEMORY}: " in line for line in explained(pod))


def test_an_undeclared_pod_is_told_how_to_declare() -> None:
    """
    Without any amount the advice is to name one.
    """
    pod = replace(
        seen_pod(mode=None), declaration=replace(seen_pod().declaration, limit_bytes=None)
    )

    assert any("such as 6Gi" in line for line in explained(pod, mode=None))
    assert any("= no limit:" in line for line in explained(pod, mode=None))


def test_a_node_without_an_agent_is_named() -> None:
    """
    The story says which node nobody measures.
    """
    lines = explained_without_agent()

    assert any("no agent runs on node gpu-1" in line for line in lines)


def explained_without_agent() -> list[str]:
    return explanation(PodStory(seen_pod(), "evict"), Display(width=100))


def test_a_pod_that_its_agent_does_not_know_holds_nothing() -> None:
    """
    A snapshot without the pod is a measurement too.
    """
    lines = explained(seen_pod(uid="new"), agent(snapshot()))

    assert any("the agent does not know the pod" in line for line in lines)


def test_an_idle_pod_holds_nothing() -> None:
    """
    A row without a card is a pod without memory; a node never sampled says so.
    """
    row = pod_row()._replace(uses=())
    lines = explained(seen_pod(), agent(snapshot(row, stale_seconds=None)))

    assert "  It holds no memory on any card." in lines
    assert any("nothing was ever measured" in line for line in lines)


def test_a_plan_without_containers_has_no_figures() -> None:
    """
    Where no container was told anything there is nothing to be exact about.
    """
    pod = seen_pod()
    plan = pod.recorded.plan
    assert plan is not None
    empty = replace(pod, recorded=replace(pod.recorded, plan=plan._replace(containers={})))

    assert not any("Exact for" in line for line in explained(empty))
