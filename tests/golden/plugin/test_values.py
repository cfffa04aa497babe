"""What programs read of tables and patches, and the dashboard's page of one look."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.capped import Ending
from gpufence.memory_condition import HeldOnCard, MemoryReason
from gpufence.need import NeedReasons
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import EndedRow, PodActivityRow, PodRow
from kubectl_gpufence.card_lines import CARD_FIELDS, NODE_FIELDS, card_lines, node_lines
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pod_lines import POD_FIELDS, idle_for, pod_lines, verdict_on
from kubectl_gpufence.pods import SeenEvent, SeenPod, read_event, see_pod
from kubectl_gpufence.verbs.dashboard.model import page_model
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.document import document
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.verbs.idle.lines import IDLE_FIELDS, idle_lines
from kubectl_gpufence.verbs.inspect import inspection
from kubectl_gpufence.verbs.recommend.patches import patch_of
from kubectl_gpufence.verbs.why.story import FoundRecord, story
from kubectl_gpufence.view import Display, columns_of, records, table
from tests.golden.plugin.test_recommend import EIGHT, OWNERS, T4, owner, patched
from tests.support import verb_cases
from tests.support.builders import NEED_KEY, need_summary
from tests.support.golden import assert_cases, assert_reviewed, leaves
from tests.support.plugin import (
    UID,
    agent,
    card_row,
    cluster,
    pod_row,
    raw_saying,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.plugin_cases import odd, odd_cards, silent, stale, typical
from tests.support.verb_cases import led

FILES = Path(__file__).parent / "values"
TWO = (card_row(), card_row(1))
AT_WORK = (
    card_row(busy_share=0.874, celsius=61, watts=42, most_watts=70),
    card_row(1, celsius=0, watts=9),
    card_row(2),
)
UNFENCED = "card 1: GB10 (GPU-b) has no memory of its own but shares the machine's"
DRIVER = (pod_row(use_row(fence="driver")), pod_row(use_row(fence="driver"), uid="u2"))
BLIND = snapshot(cards=(card_row(used_bytes=None, free_bytes=None),), trouble="NVML is gone")
ENDING = Ending("main", 137, "OOMKilled", "2026-01-02T03:04:05Z", 5, "CrashLoopBackOff", "oom")
CALM = ENDING._replace(reason="Error", restarts=1, waiting="", out_of_memory="")
FAILING = cluster(replace(seen_pod(), endings=(ENDING, CALM)), agents=(agent(snapshot()),))
ROWS = (pod_row(use_row(2 * GIB)), pod_row(use_row(GIB), uid="u2", namespace="team-b"))
FULL = card_row(used_bytes=4 * GIB, unattributed_bytes=GIB // 2, total_bytes=8 * GIB)
LATE = FULL._replace(used_bytes=GIB, unattributed_bytes=None)


def on(*cards: Any, rows: tuple[Any, ...] = (), **more: Any) -> ClusterAnswers:
    """Build what an agent says of these cards."""
    return cluster(agents=(agent(snapshot(*rows, cards=cards, **more)),))


def page(found: ClusterAnswers, *events: SeenEvent, namespace: str = "") -> Any:
    return page_model(found, namespace, events)


VALUES: dict[str, Callable[[], Any]] = {
    "pods": lambda: records(POD_FIELDS, pod_lines(odd(), "")),
    "cards": lambda: records(CARD_FIELDS, card_lines(odd_cards())),
    "cards-silent": lambda: records(CARD_FIELDS, card_lines(silent())),
    "cards-of-drivers": lambda: records(CARD_FIELDS, card_lines(on(TWO[0], rows=DRIVER))),
    "nodes": lambda: records(NODE_FIELDS, node_lines(odd_cards())),
    "owners": lambda: records(IDLE_FIELDS, idle_lines(led(), "")),
    "page": lambda: page(typical()),
    "page-silent": lambda: page(silent()),
    "page-cards": lambda: page(odd_cards())["cards"],
    "page-of-namespace": lambda: page(on(FULL, rows=ROWS), namespace="team-a"),
    "page-of-late-sums": lambda: page(on(LATE, rows=ROWS))["cards"],
    "page-of-endings": lambda: [pod["endings"] for pod in page(FAILING)["pods"]],
    "page-of-alike-cards": lambda: page(on(*TWO))["nodes"],
    "page-of-cards-at-work": lambda: [card["facts"] for card in page(on(*AT_WORK))["cards"]],
    "page-of-mixed-cards": lambda: page(on(TWO[0], card_row(1, model=""))),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_reviewed(name: str) -> None:
    """What is unknown is null and never zero, amounts are exact, and words are those of tables."""
    shown = "".join(f"{line.strip()}\n" for line in leaves(VALUES[name]()))

    assert_reviewed(FILES / f"{name}.txt", shown)


def test_every_verdict_of_the_page_is_that_of_the_table() -> None:
    """Where nothing is counted down the words are the same; where something is, they begin so."""
    for found in (typical(), odd(), silent(), stale()):
        for line, pod in zip(pod_lines(found, ""), page(found)["pods"], strict=True):
            assert verdict_on(line).text.startswith(pod["verdict"]["text"][0])
            assert pod["verdict"]["over"] or verdict_on(line).text == pod["verdict"]["text"][0]


OOM = Ending("trainer", 1, waiting="CrashLoopBackOff", out_of_memory="CUDA out of memory")
ENDED = EndedRow("trainer", "", "too small", certain=True)
UNFENCED_AGENT = (agent(snapshot()._replace(pods=())),)
TEAM_B = pod_row(uid="u9", namespace="team-b", name="other")


def ended(*endings: Ending, row: Any = None) -> ClusterAnswers:
    """Build a pod whose containers ended so, of which its agent says this, if it answers."""
    agents = () if row is None else (agent(snapshot(row)),)
    return cluster(replace(seen_pod(), endings=endings), agents=agents)


def idle(row: Any) -> Any:
    return row._replace(uses=())


AGAIN = OOM._replace(waiting="", restarts=1, at="2026-01-02T03:03:05Z")

POD_VERDICTS: dict[str, ClusterAnswers] = {
    "agents may not be asked": cluster(seen_pod(), may_ask=False),
    "its agent may not be asked": cluster(seen_pod(), agents=(agent(None, "no", denied=True),)),
    "no agent": cluster(seen_pod()),
    "not fenced": cluster(seen_pod(mode=None), agents=UNFENCED_AGENT),
    "a successor of the same name": cluster(seen_pod(uid="new"), agents=(agent(snapshot()),)),
    "one of another namespace": cluster(agents=(agent(snapshot(pod_row(), TEAM_B)),)),
    "in a crash loop at its cap": ended(OOM),
    "ended at its cap": ended(OOM._replace(waiting="")),
    "refused at its start": ended(OOM._replace(refused="no")),
    "its agent is certain": ended(row=pod_row(ended=(ENDED,))),
    "its agent is not": ended(row=idle(pod_row(ended=(ENDED._replace(certain=False),)))),
    "it has run well since": ended(OOM, row=pod_row()),
    "a crash loop of which its agent knows nothing": ended(OOM, row=idle(pod_row())),
    "a crash loop that its agent takes for loading": ended(
        OOM, row=idle(pod_row(activity=PodActivityRow("busy", 0.0, "Loading")))
    ),
    "ended, and holds nothing": ended(OOM._replace(waiting=""), row=idle(pod_row())),
    "restarted a minute ago": ended(AGAIN, row=idle(pod_row())),
    "restarted yesterday": ended(AGAIN._replace(at="2026-01-01T03:04:05Z"), row=idle(pod_row())),
    "restarted at some time": ended(AGAIN._replace(at=""), row=idle(pod_row())),
    "an eviction counts more": ended(row=pod_row(use_row(outcome="evict"), ended=(ENDED,))),
}
CARD_STATES: dict[str, ClusterAnswers] = {
    "a card beside one without memory": on(TWO[0], trouble=UNFENCED),
    "a card that cannot be read": cluster(agents=(agent(BLIND),)),
}


def test_verdicts_of_tables_are_those_reviewed() -> None:
    """What was not asked is no fact, an end for want of memory is, and use counts by UID alone."""
    pods = {
        title: [
            f"  {line.name}: {verdict_on(line).text}, idle {idle_for(line).text}"
            for line in pod_lines(found, "team-a")
        ]
        for title, found in POD_VERDICTS.items()
    }
    cards = {title: [f"  {x.state}" for x in card_lines(at)] for title, at in CARD_STATES.items()}

    assert_cases(FILES / "verdicts.txt", {**pods, **cards})


EVENT = {
    "metadata": {"creationTimestamp": "2026-01-02T03:00:00Z"},
    "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "trainer-0"},
    "reason": "GPUMemoryLimitExceeded",
    "message": "holds too much\x1b[2J",
    "type": "Warning",
    "count": 3,
    "lastTimestamp": "2026-01-02T03:04:05Z",
}
API, GONE, HERE = (
    *("team-a/ReplicaSet/api-7d9f", "team-a/Pod/api-7d9f-gone1"),
    "team-a/Pod/api-7d9f-x2x4k",
)
OWNED = (
    pod_row(use_row(GIB), uid="u1", name="api-7d9f-x2x4k", owner="ReplicaSet/api-7d9f"),
    pod_row(use_row(GIB), uid="u2", name="net-worker-0", owner="PyTorchJob/net"),
    pod_row(use_row(GIB), uid="u3", owner=""),
)


def said(about: str, at: int = 0, reason: str = "Over", **changes: Any) -> SeenEvent:
    moment = f"2026-01-02T03:04:{at:02}Z"
    return SeenEvent(moment, reason, 1, f"of {about}", about)._replace(**changes)


EPISODES: dict[str, tuple[SeenEvent, ...]] = {
    **{
        f"about {about}": (said(about),)
        for about in (
            *(HERE, GONE, API, "team-a/Deployment/api", "team-a/Deployment/api-7d9f"),
            *("team-a/StatefulSet/api", "team-a/Pod/api-7d9f-two-x2x4k", "team-a/Pod/lonely"),
            *("team-b/Pod/api-7d9f-gone1", "team-b/Deployment/api", "Node/gpu-1"),
            *("team-a/ReplicaSet/api-5c6d7f8b", "team-a/Job/nightly-29412345"),
            "team-a/Pod/net-worker-1",
        )
    },
    "one is of pods and their owner": (
        said(API, 9, times=7),
        said(GONE, 5, times=3, since="2026-01-02T03:00:00Z"),
        said(HERE, 7, warning=True),
        said(HERE, 1, "Evicted"),
    ),
    "one of an owner alone": (said(API, 2, times=7), said("Node/gpu-1", 1)),
    **{
        f"ends by {reason}": (said(GONE, 5, reason), said("team-a/Pod/alone", 3, reason))
        for reason in ("GPUMemoryEvicted", "GPUMemoryCapReached")
    },
    "as the API server has it": (read_event(EVENT),),
    "of an Event that says little": (
        read_event({"involvedObject": {"kind": "Node"}, "count": "many"}),
    ),
}


def test_episodes_are_those_reviewed() -> None:
    """Events belong to the owner of their pod, also of one that is gone, and are one for each."""
    found = replace(cluster(agents=(agent(snapshot(*OWNED)),)), pods=())
    cases = {title: leaves(page(found, *events)["episodes"]) for title, events in EPISODES.items()}

    assert_cases(FILES / "episodes.txt", cases)


WHY = NeedReasons("it held that", "the peak", "9 days", "mostly less was held")
LESS = {"request_bytes": 2 * GIB, "reasons": WHY}


def test_a_patch_requests_what_is_enough_mostly_and_bursts_to_the_target() -> None:
    """Only where that is asked for, or where the template bursts already."""
    already, said = (
        owner({"limits": EIGHT}, metadata={"annotations": {names.BURST: most}})
        for most in ("10Gi", "6Gi")
    )
    capped = owner({"limits": {names.HAMI_MEMORY: "3000"}})
    cases = {
        title: patched(raw, {**LESS, **own}, burst=True) for title, (raw, own) in OWNERS.items()
    }
    cases |= {
        "no less is enough": patched(*OWNERS["limits"], burst=True),
        "no target": patched(already, {**LESS, "target_bytes": None}, burst=True),
        "a library caps": patched(capped, LESS, burst=True),
        "it bursts already": patched(already, LESS),
        "it says so already": patched(said, LESS),
    }

    assert_cases(FILES / "bursts.txt", {title: lines for title, (_, lines) in cases.items()})


def test_of_several_containers_one_may_request_less() -> None:
    """The burst is what all of them need together, and each figure has its reason beside it."""
    raw = owner({"limits": EIGHT})
    raw["spec"]["template"]["spec"]["containers"] += [{"name": "side", "resources": {}}]
    raw["spec"]["template"]["spec"]["containers"][1]["resources"] = {"limits": EIGHT}
    side = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=GIB)
    patch, _ = patch_of([need_summary(**LESS), side], raw, T4, burst=True)
    assert patch is not None
    template = patch.body["spec"]["template"]  # type: ignore[index]  # JSON of some shape

    assert {names.BURST: "7Gi"} == template["metadata"]["annotations"]
    assert ["2", "1"] == [
        item["resources"]["limits"][names.GPUSHARE_MEMORY]
        for item in template["spec"]["containers"]
    ]
    assert [True, False] == ["requests 2048 MiB" in line for line in patch.comments]


BORROWER = pod_row(
    use_row(4 * GIB, limit_bytes=6 * GIB, promised_bytes=3 * GIB, borrowed_bytes=GIB)._replace(
        outcome="borrowing", allowance_bytes=4300 * MIB
    )
)
RECALLED = BORROWER._replace(
    uses=(BORROWER.uses[0]._replace(outcome="recalled", due_seconds=12.0),)
)
LENDER = pod_row(use_row(GIB, owed_bytes=2 * GIB, lends=True), uid="u2", name="lender")
BUSY = LENDER._replace(uses=(LENDER.uses[0]._replace(lends=False),))
BURST = seen_pod(annotations={names.BURST: "200%"})
SAYS = HeldOnCard(0, 4 * GIB, 6 * GIB, 3 * GIB)
SAID = see_pod(raw_saying(MemoryReason.BORROWING, SAYS, annotations={names.BURST: "200%"}), None)


def bursting(*rows: PodRow) -> ClusterAnswers:
    return cluster(BURST, agents=(agent(snapshot(*rows)),))


def top(found: ClusterAnswers, display: Display | None = None, *, wide: bool = False) -> list[str]:
    return table(columns_of(POD_FIELDS, wide=wide), pod_lines(found, ""), display or Display())


def explained(row: PodRow, *others: PodRow, pod: SeenPod = BURST) -> list[str]:
    record = PodRecord(pod, "evict", agent(snapshot(row, *others)))
    return explanation(record, Display(100))


KEPT = RECALLED._replace(
    mode="cap", uses=(RECALLED.uses[0]._replace(outcome="would evict", due_seconds=None),)
)
LOAN = verb_cases.ENDED._replace(
    limit_bytes=6 * GIB,
    request_bytes=3 * GIB,
    enough_bytes=None,
    thresholds=(),
    course=tuple(each._replace(limit=6144) for each in verb_cases.ENDED.course),
)
LENT = bursting(BORROWER, LENDER)
MISSED = bursting(RECALLED, BUSY)
BURST_SHOWN: dict[str, Callable[[], Iterable[str]]] = {
    "top": lambda: top(LENT),
    "top, recalled": lambda: top(MISSED, Display(100)),
    "top, would be evicted for it": lambda: top(bursting(KEPT, BUSY), Display(100)),
    "top, narrow": lambda: top(MISSED, Display(80)),
    "top, wide": lambda: top(LENT, wide=True),
    "top, by its own condition": lambda: top(cluster(SAID, may_ask=False)),
    "explain, borrowing": lambda: explained(BORROWER, LENDER),
    "explain, recalled": lambda: explained(RECALLED, BUSY),
    "explain, would be evicted for it": lambda: explained(KEPT, BUSY)[4:16],
    "explain, lending": lambda: explained(LENDER._replace(uid=UID), RECALLED, pod=seen_pod()),
    "explain, idle where no pod borrows": lambda: explained(LENDER._replace(uid=UID)),
    "inspect": lambda: inspection(agent(snapshot()), snapshot(RECALLED, BUSY), Display(100)),
    "why": lambda: story(FoundRecord("gpu-1", LOAN), Display(100)),
    "json": lambda: leaves(records(POD_FIELDS, pod_lines(LENT, ""))),
    "page": lambda: leaves(page(LENT)["pods"]),
    "explain, json": lambda: leaves(
        document(PodRecord(BURST, "evict", agent(snapshot(RECALLED))))["measured"]
    ),
}


def test_what_is_borrowed_is_shown_where_any_pod_may_borrow() -> None:
    """Request, loan and what is owed, in parentheses while others may borrow that."""
    cases = {title: [f"  {line}" for line in show()] for title, show in BURST_SHOWN.items()}

    assert_cases(FILES / "burst-shown.txt", cases)
