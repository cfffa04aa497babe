"""The whole story of one pod, for people and for programs."""

from dataclasses import replace
from typing import Any

import pytest

from agent.model.decision import Brake, Outcome
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.fences import Fence
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance
from gpufence.snapshot import PodActivityRow
from kubectl_gpufence.pods import SeenEvent, SeenPod, see_pod
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.document import document
from kubectl_gpufence.verbs.explain.injected import ShareFigures, formula
from kubectl_gpufence.verbs.explain.record import PodRecord, read_events, what_will_be
from kubectl_gpufence.verdicts import (
    BRAKES,
    FENCES,
    VERDICTS,
    fence_sentence,
    verdict,
    what_follows,
)
from kubectl_gpufence.view import Display
from tests.support.builders import container, gpushare
from tests.support.plugin import agent, pod_row, raw_pod, seen_pod, snapshot, use_row
from tests.support.plugin_cases import explained, holding
from tests.support.rewriting import with_old_slots

IN_GRACE = "over 7s, in grace for 1m53s"


def test_every_verdict_of_this_versions_agent_is_known() -> None:
    """The plugin has a meaning for each word an agent may say, and for none besides."""
    assert {str(item) for item in Outcome} | {""} == set(VERDICTS)
    assert {str(item) for item in Brake} == set(BRAKES)


@pytest.mark.parametrize(
    ("changes", "mode", "text"),
    [
        ({"outcome": "grace", "over_seconds": 7.0, "due_seconds": 113.0}, "evict", IN_GRACE),
        ({"outcome": "grace", "due_seconds": 113.0}, "observe", "over, only watched"),
        ({"outcome": "holding", "due_seconds": 121.0}, "observe", "over, only watched"),
        ({"outcome": "not renewed", "over_seconds": 3.0}, "evict", "measuring"),
        ({"outcome": ""}, "evict", "agent starting"),
        ({"outcome": ""}, "", "not fenced"),
        ({"outcome": "idle"}, "evict", "holds nothing"),
        ({"outcome": "braked", "over_seconds": 40.0}, "evict", "over 40s, held back: too many"),
        ({"outcome": "backing off", "due_seconds": 5.0}, "evict", "eviction refused, again in 5s"),
        ({"outcome": "would evict", "over_seconds": 40.0}, "cap", "over 40s, would evict"),
    ],
)
def test_a_verdict_reads_by_itself(changes: dict[str, Any], mode: str, text: str) -> None:
    """A word that stands beside IDLE or without its sentence means what it says."""
    use = use_row(**changes)

    assert text == verdict(pod_row(use, mode=mode), use, str(Brake.SUSPENDED)).text


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.CAP])
def test_what_the_kill_switch_leaves_in_force_is_said(mode: Mode) -> None:
    """No pod is evicted below it; the caps of frameworks are in force all the same."""
    said = agent(snapshot(pod_row(mode="observe")))
    lines = explanation(PodRecord(seen_pod(mode=mode), "evict", said), Display())
    told = " ".join(" ".join(lines).split())

    assert "No pod is evicted, since the operator's kill switch is at observe" in told
    assert (mode is Mode.CAP) == ("the caps of mode evict are in force" in told)


def test_what_is_only_observed_is_planned_for_ever() -> None:
    """In mode observe no binding makes a value exact, so none is promised on a running pod."""
    told = "\n".join(explained(seen_pod(mode=Mode.OBSERVE), mode="observe"))

    assert "planned for a card of 15360Mi" in told
    assert "until it is bound" not in told


@pytest.mark.parametrize("outcome", sorted(VERDICTS))
def test_every_word_of_the_agent_has_a_meaning(outcome: str) -> None:
    """Each outcome is a short word in tables and a sentence in stories."""
    use = use_row(outcome=outcome)

    assert verdict(pod_row(use), use).text
    assert what_follows(pod_row(use), use).endswith(".")


def test_a_word_of_a_newer_agent_is_shown_as_it_is() -> None:
    """What this plugin does not know it neither hides nor explains away."""
    use = use_row(outcome="dancing")

    assert "dancing" == verdict(pod_row(use), use).text
    assert 'says "dancing"' in what_follows(pod_row(use), use)


def test_nobody_is_threatened_with_an_eviction_below_mode_evict() -> None:
    """In mode cap a pod over its limit stays, and its line and explanation say so."""
    use = use_row(outcome="holding", over_seconds=3.0, due_seconds=27.0)
    row = pod_row(use, mode="cap")

    assert "over 3s, only watched" == verdict(row, use).text
    assert "It is over its limit; in mode cap it stays." == what_follows(row, use)


def test_a_hold_without_an_end_is_not_dated() -> None:
    """Where the agent does not say when, nobody else does."""
    use = use_row(outcome="holding", over_seconds=3.0)

    assert what_follows(pod_row(use), use).endswith("It is evicted unless it gives memory back.")


def test_what_follows_needs_a_measurement() -> None:
    """Without a snapshot nothing is foretold."""
    assert [] == list(what_will_be(PodRecord(seen_pod(), "evict")))


def test_a_rule_of_another_version_is_not_guessed() -> None:
    """Where no known sum gives A, the explanation says so and still divides by the card."""
    lines = formula(ShareFigures(3 * GIB, 512 * MIB, 15 * GIB, 1000 * MIB, 1), Headroom.AUTO)

    assert "A = (by a rule this plugin does not know) = 1000Mi" == lines[1]
    assert "F = A / T = 0.065104" == lines[2]


def test_without_a_card_there_is_no_fraction() -> None:
    """F is of a card, and nobody knows which."""
    assert 2 == len(formula(ShareFigures(3 * GIB, 512 * MIB, None, 1, 1), Headroom.FACTOR))


def test_what_needs_no_context_is_the_part_divided() -> None:
    """A limit that a setting counts whole is divided among the processes alone."""
    lines = formula(ShareFigures(3 * GIB, 0, 15 * GIB, 3 * GIB // 2, 2), Headroom.AUTO)

    assert "A = L / n = 3072Mi / 2 = 1536Mi" == lines[1]


def test_an_allowance_by_the_other_rule_is_shown_by_that() -> None:
    """What a plan of another setting gave is explained by the rule that gave it."""
    may = allowance(8 * GIB, 8 * GIB, ShareTerms(512 * MIB, 1, Headroom.FACTOR)).bytes
    figures = ShareFigures(8 * GIB, 512 * MIB, 15 * GIB, may, 1)

    assert formula(figures, Headroom.FACTOR) == formula(figures, Headroom.AUTO)


def test_events_of_agents_are_told_in_order() -> None:
    """Other reasons are left out, refused pods are not; newer forms of events are read too."""
    over = {"reason": names.LIMIT_EXCEEDED, "lastTimestamp": "2026-01-02T00:00:01Z"}
    events = read_events(
        [
            {"reason": names.EVICTED, "eventTime": "2026-01-02T00:00:02Z", "message": "out"},
            {"reason": "Pulled", "message": "image"},
            over | {"count": 4, "message": "over"},
            {"reason": names.UNDECLARED},
            {"reason": "FailedCreate", "message": "refused"},
        ]
    )

    assert (
        SeenEvent("", names.UNDECLARED, 1, ""),
        SeenEvent("", "FailedCreate", 1, "refused"),
        SeenEvent("2026-01-02T00:00:01Z", names.LIMIT_EXCEEDED, 4, "over"),
        SeenEvent("2026-01-02T00:00:02Z", names.EVICTED, 1, "out"),
    ) == events
    assert "at some time GPUMemoryUndeclared: " == events[0].sentence


def planned(**changes: Any) -> SeenPod:
    """Build a pod whose plan says something else."""
    pod = seen_pod()
    plan = pod.recorded.plan
    assert plan is not None
    return replace(pod, recorded=replace(pod.recorded, plan=plan._replace(**changes)))


def without(key: str, **changes: Any) -> SeenPod:
    """Build a pod that has lost one of the webhook's annotations."""
    raw = raw_pod(**changes)
    del raw["metadata"]["annotations"][key]
    return see_pod(raw, None)


def shared(**changes: Any) -> SeenPod:
    """Build a pod that asks for half of a card that only the webhook knew."""
    half = {names.KAI_FRACTION: "0.5"}
    return see_pod(raw_pod(container("main"), annotations=half, **changes), None)


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (without(names.CARD, bound=False), "No card's size was known"),
        (planned(limit_bytes=GIB + 1), "computed with 1024Mi (1073741825 bytes) on each card"),
        (without(names.PLAN), "gpufence.io/plan is missing"),
        (shared(), "the webhook computed with 7680Mi on each card (kai)"),
        (seen_pod(namespace={names.MAX_MEMORY: "2Gi"}), f"{names.MAX_MEMORY}: "),
        (shared(mode=None), "such as 6Gi"),
        (shared(mode=None), "= no limit: "),
        (seen_pod(uid="new"), "the agent does not know the pod"),
    ],
    ids=["card", "reckoned", "plan", "kai", "namespace", "advice", "undeclared", "unmeasured"],
)
def test_a_rare_state_has_its_sentence(pod: SeenPod, text: str) -> None:
    """Whatever is missing, or known to one side alone, the explanation says so."""
    assert text in "\n".join(explained(pod))


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (planned(limit_bytes=None), "reckoned"),
        (seen_pod(gpushare("main"), container("other")), "container other asks"),
        (shared(), "no limit"),
        (planned(containers={}), "Exact for"),
    ],
    ids=["no limit planned", "no GPU", "planned limit", "no container told"],
)
def test_what_does_not_apply_is_not_told(pod: SeenPod, text: str) -> None:
    """An explanation has no sentence about a limit, a request or a figure that is not there."""
    assert text not in "\n".join(explained(pod))


def test_a_node_without_an_agent_is_named() -> None:
    """The explanation says which node nobody measures."""
    lines = explanation(PodRecord(seen_pod(), "evict"), Display())

    assert "  Unknown: no agent runs on node gpu-1." in lines


def test_an_idle_pod_holds_nothing() -> None:
    """A row without a card is a pod without memory; a node never sampled says so."""
    row = pod_row()._replace(uses=())
    lines = explained(seen_pod(), agent(snapshot(row, stale_seconds=None)))

    assert "  It holds no memory on any card." in lines
    assert any("nothing was ever measured" in line for line in lines)


@pytest.mark.parametrize(("slack", "ignored"), [(None, False), (0, True), (GIB, False)])
def test_the_operators_slack_of_caps_counts(slack: int | None, *, ignored: bool) -> None:
    """
    Whether a process keeps to its settings is judged as its agent judges it; an older agent, which
    does not say how, is taken for one with the usual slack.
    """
    state = snapshot(pod_row(use_row(3000 * MIB)), cap_slack_bytes=slack)
    record = "\n".join(explained(seen_pod(), agent(state)))

    assert ignored is ("it ignores its settings" in " ".join(record.split()))


@pytest.mark.parametrize(
    ("words", "most"), [({}, "nothing"), ({names.MAX_MEMORY: "2Gi"}, "2Gi")], ids=["nothing", "2Gi"]
)
def test_a_pod_that_asks_for_no_gpu_may_hold_what_its_namespace_says(
    words: dict[str, str], most: str
) -> None:
    """Where its namespace evicts such pods the explanation says so, and what it may hold."""
    raw = raw_pod(container("web"), mode=None)
    record = explained(see_pod(raw, None, {names.UNDECLARED_USE: "evict", **words}))
    told = " ".join(" ".join(record).split())

    assert f"{names.UNDECLARED_USE}: evict; of a card it may hold {most}" in told
    assert "no limit" not in told


def test_amounts_are_exact_and_settings_have_their_values() -> None:
    """What is declared, injected and measured stands side by side, as quantities."""
    told = document(PodRecord(seen_pod(), "evict", holding()))

    [torch] = [
        item
        for item in told["injected"]["containers"]["trainer"]["settings"]  # type: ignore[index]  # JSON
        if item["name"] == "PYTORCH_ALLOC_CONF"
    ]
    assert ("set", "per_process_memory_fraction:0.140000") == (torch["done"], torch["value"])
    assert ("3072Mi", "512Mi", "15360Mi") == (torch["limit"], torch["reserve"], torch["card"])
    assert {
        "card": "GPU-0",
        "index": 0,
        "model": "Tesla T4",
        "total": "15360Mi",
        "limit": "3072Mi",
        "used": "3500Mi",
        "outcome": "holding",
        "fence": "framework",
        "over": 12.0,
        "due": 18.0,
        "processes": [{"pid": 41, "container": "trainer", "used": "3500Mi"}],
    } == told["measured"]["cards"][0]  # type: ignore[index]  # JSON


def test_every_fence_has_its_sentence() -> None:
    """Each word of the agents is explained; one of a newer agent stands as it came."""
    assert [*Fence] == list(FENCES)
    assert "fence newer?" == fence_sentence("newer\x1b")


def test_what_nobody_knows_is_null_and_says_why() -> None:
    """A pod that no agent measures has no cards, never zero of them used."""
    told = document(PodRecord(seen_pod(mode=None), None, agent(None, "it does not answer in time")))

    assert told["mode"] is None
    assert {
        "unknown": "Unknown: it does not answer in time.",
        "stale": None,
        "activity": None,
        "cards": [],
        "said": None,
    } == told["measured"]
    assert {
        "outcome": "",
        "trouble": "",
        "mode": None,
        "limit": None,
        "told": None,
        "exact": False,
        "card": "",
        "containers": {},
    } == told["injected"]


def test_an_old_sample_tells_its_age_and_no_activity() -> None:
    """What a pod did minutes ago is not what it does."""
    row = pod_row(
        use_row(2 * GIB, card="GPU-gone"), activity=PodActivityRow("idle", 763.0, "NoKernels")
    )
    old = document(PodRecord(seen_pod(), "evict", agent(snapshot(row, stale_seconds=200.0))))
    fresh = document(PodRecord(seen_pod(), "evict", agent(snapshot(row))))

    assert (200.0, None) == (old["measured"]["stale"], old["measured"]["activity"])  # type: ignore[index]  # JSON
    assert None is old["measured"]["cards"][0]["model"]  # type: ignore[index]  # JSON
    assert (0.0, 763.0) == (
        fresh["measured"]["stale"],  # type: ignore[index]  # JSON
        fresh["measured"]["activity"]["idle"],  # type: ignore[index]  # JSON
    )


def test_values_of_the_users_own_that_cannot_be_read_are_null() -> None:
    """Warnings and events are there as well."""
    left = {"name": "JULIA_CUDA_HARD_MEMORY_LIMIT", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
    pod = seen_pod(gpushare("trainer") | {"env": [left]}, annotations={names.WARNINGS: ""})
    event = SeenEvent("2026-01-02T03:04:05Z", names.LIMIT_EXCEEDED, 3, f"held {GIB // MIB} MiB")
    told = document(PodRecord(pod, "evict", holding(), events=(event,)))

    [julia] = [
        item
        for item in told["injected"]["containers"]["trainer"]["settings"]  # type: ignore[index]  # JSON
        if item["done"] == "left"
    ]
    assert ("JULIA_CUDA_HARD_MEMORY_LIMIT", None) == (julia["name"], julia["value"])
    assert [
        {"at": "2026-01-02T03:04:05Z", "reason": names.LIMIT_EXCEEDED, "times": 3}
        | {"message": "held 1024 MiB"}
    ] == told["events"]


def test_a_pod_with_numbers_for_slots_is_explained_as_any_other() -> None:
    """What an earlier version set is found by the plan, whatever the annotations are called."""
    raw = raw_pod()
    old = with_old_slots(raw)

    assert f"{names.ENV_PREFIX}s0" in old["metadata"]["annotations"]
    assert explained(see_pod(raw, None)) == explained(see_pod(old, None))
