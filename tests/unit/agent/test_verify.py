"""What `gpufence-agent verify` makes of what was measured: a sentence for what differs."""

from dataclasses import replace
from typing import Any

import pytest

from agent.commands.verify.assumptions import as_assumed, findings, verdict
from agent.commands.verify.facts import (
    Afterwards,
    CapTrial,
    CardFacts,
    CardTrial,
    DriverFacts,
    Growth,
    KernelView,
    ProcessListing,
)
from gpufence.errors import Level
from gpufence.quantity import GIB, MIB
from gpufence.reserves import read_reserves

STEP = 256 * MIB
UUID = "GPU-6d59f2fe-90e8-5795-bcf0-20d4b8095185"


def growth(kind: str = "malloc", listed: int | None = STEP, **more: Any) -> Growth:
    more = {"card_bytes": STEP, "free_bytes": STEP, "left_bytes": 0} | more
    return Growth(kind=kind, asked_bytes=STEP, process_bytes=listed, **more)


OTHERS = (growth("pool"), growth("virtual"), growth("managed", 0))
LISTING = ProcessListing(
    under_its_pid=True,
    strangers=(),
    neighbour_bytes=STEP + 300 * MIB,
    neighbour_asked=STEP,
    mps_client=False,
    mps_server=False,
    processes=8,
    look_seconds=(0.001, 0.4, 0.001),
)
TRIAL = CardTrial(
    cuda_uuid=UUID,
    visible_bytes=14930 * MIB,
    context_bytes=300 * MIB,
    growths=(growth(), *OTHERS),
    listing=LISTING,
    ending=Afterwards(exited_seconds=0.0, killed_seconds=0.1, left_bytes=-1),
    identity=KernelView(cgroup=("0::/",), age_seconds=1.0),
)
TORCH = CapTrial(name="torch", told_bytes=GIB, most_bytes=GIB + 300 * MIB)
UNTRIED = CardFacts(uuid=UUID, model="Tesla T4", total_bytes=15 * GIB, compute_capability=(7, 5))
CARD = replace(UNTRIED, trial=TRIAL)
FACTS = DriverFacts(
    driver="580.95.05",
    kernel="6.12",
    cgroup_version=2,
    host_pids=True,
    in_container=False,
    mps=False,
    cards=(CARD,),
)


def said(level: Level, facts: DriverFacts = FACTS, **trial: Any) -> list[tuple[str, str, str]]:
    """Return what is said at a level of a card whose trial differs by `trial`."""
    cards = tuple(replace(card, trial=replace(TRIAL, **trial)) for card in facts.cards)
    found = findings(replace(facts, cards=cards))
    return [
        (item.subject.removeprefix("GPU-6d59f2fe "), item.text, item.remedy)
        for item in found
        if item.level is level
    ]


def test_a_driver_as_assumed_is_said_to_be_one() -> None:
    """Nothing differs, and each assumption says what was found."""
    found = findings(FACTS)

    assert as_assumed(found)
    assert "As assumed." == verdict(found)
    assert 16 == len(found)


@pytest.mark.parametrize(
    ("subject", "text", "changed"),
    [
        ("name", "CUDA says GPU-other", {"cuda_uuid": "GPU-other"}),
        ("size", "a program sees 4096Mi", {"visible_bytes": 4 * GIB}),
        (
            "PIDs",
            "of another namespace (1)",
            {"listing": replace(LISTING, under_its_pid=False, strangers=(STEP,))},
        ),
        ("PIDs", "is in no list", {"listing": replace(LISTING, under_its_pid=False)}),
        (
            "bytes of a process",
            "as if it counted in KiB",
            {"growths": (growth(listed=STEP // 1024), *OTHERS)},
        ),
        ("bytes of a process", "128Mi listed", {"growths": (growth(listed=STEP // 2), *OTHERS)}),
        ("bytes of a process", "nothing known", {"growths": (growth(listed=None), *OTHERS)}),
        ("memory by pool", "0Mi listed", {"growths": (growth(), growth("pool", 0))}),
        ("bytes of the card", "0Mi in use more", {"growths": (growth(card_bytes=0), *OTHERS)}),
        ("what is free", "0Mi less is free", {"growths": (growth(free_bytes=0), *OTHERS)}),
        ("managed memory", "256Mi listed", {"growths": (growth(), growth("managed"))}),
        ("memory given back", "256Mi stay listed", {"growths": (growth(left_bytes=STEP), *OTHERS)}),
        ("CUDA context", "takes 1536Mi", {"context_bytes": 1536 * MIB}),
        ("two processes", "is not listed", {"listing": replace(LISTING, neighbour_bytes=None)}),
        ("two processes", "shows 1Mi", {"listing": replace(LISTING, neighbour_bytes=MIB)}),
        ("MPS", "clients are not listed", {"listing": replace(LISTING, mps_server=True)}),
        (
            "processes that end",
            "ended stays",
            {"ending": Afterwards(exited_seconds=None, killed_seconds=None, left_bytes=STEP)},
        ),
        (
            "processes that end",
            "was killed stays",
            {"ending": Afterwards(exited_seconds=0.1, killed_seconds=2.5, left_bytes=0)},
        ),
        (
            "memory of the dead",
            "256Mi are still in use",
            {"ending": Afterwards(exited_seconds=0.1, killed_seconds=0.1, left_bytes=STEP)},
        ),
        ("a look", "300.0 ms", {"listing": replace(LISTING, look_seconds=(0.3,))}),
        ("process and pod", "does not show", {"identity": KernelView(cgroup=())}),
        (
            "cap torch",
            "2048Mi held at most",
            {"caps": (CapTrial(name="torch", told_bytes=GIB, most_bytes=2 * GIB),)},
        ),
    ],
)
def test_what_differs_is_said_alone(subject: str, text: str, changed: dict[str, Any]) -> None:
    """One cause is one sentence with a remedy; what follows from it is left out."""
    (found,) = said(Level.WRONG, **changed)

    assert subject == found[0]
    assert text in found[1]
    assert found[2]


def test_a_context_that_is_too_large_says_what_to_set() -> None:
    """The value is that card's alone, with room for libraries that a bare context lacks."""
    (found,) = said(Level.WRONG, context_bytes=1500 * MIB)

    assert 'set GPUFENCE_RESERVE="Tesla T4=1664Mi" at the webhook' == found[2]


def test_one_setting_is_for_all_cards_of_the_machine() -> None:
    """The largest of each model that differs is in it, and nothing of a model that does not."""
    large = replace(TRIAL, context_bytes=1500 * MIB)
    cards = (
        replace(CARD, trial=replace(TRIAL, context_bytes=600 * MIB)),
        replace(CARD, trial=large),
        replace(CARD, model="NVIDIA L4", compute_capability=(8, 9)),
        replace(CARD, model="NVIDIA H100", compute_capability=(9, 0), trial=large),
        UNTRIED,
    )
    remedies = {item.remedy for item in findings(replace(FACTS, cards=cards)) if item.remedy}

    assert {'set GPUFENCE_RESERVE="Tesla T4=1664Mi,NVIDIA H100=1664Mi" at the webhook'} == remedies


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Tesla T4=1664Mi", ""),
        ("NVIDIA L4=1Gi,1664Mi", ""),
        ("Tesla T4=1Gi,NVIDIA L4=1Gi", 'GPUFENCE_RESERVE="Tesla T4=1664Mi,NVIDIA L4=1Gi"'),
        ("NVIDIA L4=1Gi,700Mi", 'GPUFENCE_RESERVE="700Mi,NVIDIA L4=1Gi,Tesla T4=1664Mi"'),
    ],
)
def test_what_is_set_already_is_kept_for_a_context(text: str, remedy: str) -> None:
    """A setting that was obeyed is as assumed; one that is not enough is printed whole."""
    card = replace(CARD, trial=replace(TRIAL, context_bytes=1500 * MIB))
    found = findings(replace(FACTS, cards=(card,)), read_reserves(text, "GPUFENCE_RESERVE"))
    remedies = [item.remedy for item in found if item.subject.endswith("CUDA context")]

    assert [f"set {remedy} at the webhook" if remedy else ""] == remedies


@pytest.mark.parametrize(
    ("caps", "remedy"),
    [
        ((), ""),
        ((TORCH,), 'GPUFENCE_RESERVE="Tesla T4=320Mi" at the webhook leaves the programs'),
        ((TORCH, replace(TORCH, most_bytes=TORCH.told_bytes + 510 * MIB)), ""),
        ((replace(TORCH, trouble="it took hardly any memory"),), ""),
    ],
)
def test_less_is_kept_only_for_programs_that_were_tried(
    caps: tuple[CapTrial, ...], remedy: str
) -> None:
    """A small context alone is no reason: a framework's libraries are not in it."""
    found = said(Level.OK, context_bytes=176 * MIB, caps=caps)
    (text,) = [each[2] for each in found if each[0] == "CUDA context"]

    assert remedy in text
    assert bool(remedy) == bool(text)


def test_what_is_explained_does_not_differ() -> None:
    """The driver's own limit, MPS clients that are listed, and a container that is recognised."""
    facts = replace(FACTS, driver_limit_bytes=3 * GIB, mps=True, in_container=True)
    changed = {
        "visible_bytes": 3 * GIB,
        "listing": replace(LISTING, mps_client=True),
        "identity": KernelView(cgroup=("0::/x",), container=True, pod=True, age_seconds=1.0),
        "caps": (CapTrial(name="torch", told_bytes=GIB, most_bytes=GIB + 300 * MIB),),
        "growths": (growth(), growth("managed", None)),
    }

    assert [] == said(Level.WRONG, facts, **changed)


def test_a_container_must_be_recognised_in_one() -> None:
    """Where the agent is in a container, so are its processes."""
    (found,) = said(Level.WRONG, replace(FACTS, in_container=True))

    assert "names no container" in found[1]


def test_what_could_not_be_tried_is_no_difference() -> None:
    """A kind of memory that CUDA refuses, or a program that took nothing, is told apart."""
    none = CapTrial(name="jax", told_bytes=GIB, most_bytes=0, trouble="it took hardly any memory")
    refused = growth("malloc", refused="cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY")
    pool = growth("pool", None, refused="cuMemAllocAsync: this driver does not have it")

    untried = said(Level.UNKNOWN, growths=(refused, pool), caps=(none,))
    assert ["bytes of a process", "cap jax"] == [each[0] for each in untried]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            replace(FACTS, cards=(replace(UNTRIED, untried="only 4Mi are free"),)),
            "Nothing was tried.",
        ),
        (
            replace(FACTS, cards=(replace(UNTRIED, trouble="no lists"),)),
            "Differs: 1 of 2 assumptions.",
        ),
        (replace(FACTS, cards=(), trouble="no card"), "Differs: 1 of 1 assumptions."),
        (replace(FACTS, host_pids=False), "As assumed."),
        (
            replace(FACTS, cards=(CARD, replace(UNTRIED, untried="full"))),
            "As assumed. Not tried: 1.",
        ),
    ],
)
def test_the_verdict_counts_what_was_tried(facts: DriverFacts, expected: str) -> None:
    """Nothing tried is not as assumed; one card of two is, and says so."""
    found = findings(facts)

    assert expected == verdict(found)
    assert expected.startswith("As assumed") == as_assumed(found)


def test_facts_are_a_document() -> None:
    """They have a version, and every figure by its name."""
    document = FACTS.document()

    assert 1 == document["v"]
    assert {"driver", "kernel", "cards", "mps"} <= document.keys()
