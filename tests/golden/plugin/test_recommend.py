"""Targets in the words of each sharing system, as patches, cards they would free, and a page."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.dialects import SPECS, Units
from gpufence.need import Confidence, NeedReasons
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import PodRow, Snapshot
from kubectl_gpufence.verbs.recommend import page_style
from kubectl_gpufence.verbs.recommend.lines import Packing, PodShare, cards_needed, packings, unsure
from kubectl_gpufence.verbs.recommend.page import (
    ChartDay,
    ModelDays,
    chart,
    chart_days,
    ordinal,
    page,
)
from kubectl_gpufence.verbs.recommend.patches import (
    NodeWords,
    OwnerPatch,
    kustomization,
    patch_of,
    targets_of,
    wanted,
)
from tests.support.builders import NEED_KEY, container, need_day, need_summary, pod, sidecar
from tests.support.golden import assert_cases
from tests.support.plugin import card_row, pod_row, snapshot, use_row

FILES = Path(__file__).parent / "values"
T4, SMALL, UNKNOWN = (NodeWords(Units(), size) for size in (15_360 * MIB, GIB, None))
MIG = f"{names.NVIDIA_MIG_PREFIX}1g.5gb"
ONE_GPU = {names.NVIDIA_GPU: "1"}
TARGET = {"main": 5000 * MIB}


def main(**resources: str) -> dict[str, Any]:
    return container(**resources) | {"name": "main"}


def said(
    *containers: dict[str, Any],
    nodes: NodeWords = T4,
    targets: dict[str, int] | None = None,
    annotations: dict[str, str] | None = None,
) -> Iterator[str]:
    """Say the targets of containers in the words of what they ask for."""
    made = pod(*containers, annotations=annotations or {})
    change = wanted(read_pod(made), TARGET if targets is None else targets, nodes)
    yield from (f"  {name}: {json.dumps(value)}" for name, value in change._asdict().items())


def asks(resource: str, value: str = "1", nodes: NodeWords = T4) -> Any:
    return said(main(**{resource: value}), nodes=nodes)


TWO = (main(**ONE_GPU), sidecar("side", **ONE_GPU), container() | {"name": "proxy"})
CLAIMING = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
OWN = f"{names.MEMORY_OF_CONTAINER}main"
HALF = {names.KAI_FRACTION: "0.5"}
WORDS = {
    "gpushare": asks(names.GPUSHARE_MEMORY, "3"),
    "gpushare in MiB": asks(names.GPUSHARE_MEMORY, "3000", NodeWords(Units(MIB), None)),
    "gpushare in an unknown unit": asks(names.GPUSHARE_MEMORY, "1", NodeWords(Units(None), None)),
    "Volcano": asks(names.VOLCANO_MEMORY, "3000"),
    "Volcano by tens": asks(names.VOLCANO_MEMORY, "300", NodeWords(Units(volcano_factor=10), None)),
    "Volcano's vGPUs": asks(
        names.VOLCANO_VGPU_MEMORY, "300", NodeWords(Units(volcano_factor=16), None)
    ),
    "Volcano's vGPUs in percent": asks(names.VOLCANO_VGPU_PERCENTAGE, "80"),
    "HAMi": asks(names.HAMI_MEMORY, "3000"),
    "HAMi in percent": asks(names.HAMI_PERCENTAGE, "80"),
    "HAMi in percent of a small card": asks(names.HAMI_PERCENTAGE, "80", SMALL),
    "HAMi in percent of an unknown card": asks(names.HAMI_PERCENTAGE, "1", UNKNOWN),
    "HAMi, as it is": asks(names.HAMI_MEMORY, "5000"),
    "HAMi without a target": said(main(**{names.HAMI_MEMORY: "1"}), targets={}),
    "a MIG instance": asks(MIG),
    "a resource claim": said(CLAIMING),
    "a card": asks(names.NVIDIA_GPU),
    "no resource": said(main()),
    "several containers": said(*TWO, targets={"main": 5000 * MIB, "side": GIB}),
    "one of several without a target": said(*TWO),
    "KAI's amount": said(main(), annotations={names.KAI_MEMORY: "3000"}),
    "KAI's share": said(main(), annotations=HALF),
    "KAI's share of a small card": said(main(), nodes=SMALL, annotations=HALF),
    "KAI's share of an unknown card": said(main(), nodes=UNKNOWN, annotations=HALF),
    **{
        f"{resource} beside {key}={text}": said(main(**{resource: "1"}), annotations={key: text})
        for resource in (names.HAMI_MEMORY, names.NVIDIA_GPU)
        for key, text in ((names.MEMORY, "2Gi"), (OWN, "2Gi"), (names.MEMORY, "5000Mi"))
    },
}


def test_targets_are_in_the_words_reviewed() -> None:
    """Whole units hold a target; one that cannot be said has its reason; the same is no change."""
    assert_cases(FILES / "targets.txt", WORDS)


def test_every_resource_that_counts_memory_can_be_written() -> None:
    """Each dialect with amounts says what one of them is."""
    counted = {key for spec in SPECS for key in (*spec.unit_bytes, *spec.percentages)}

    assert {
        *(names.GPUSHARE_MEMORY, names.VOLCANO_MEMORY, names.HAMI_MEMORY, names.HAMI_PERCENTAGE),
        *(names.VOLCANO_VGPU_MEMORY, names.VOLCANO_VGPU_PERCENTAGE, names.KAI_MEMORY),
    } == counted


def owner(resources: dict[str, Any], **template: Any) -> dict[str, Any]:
    server = {"name": "server", "resources": resources}
    return {"spec": {"template": {"spec": {"containers": [server]}, **template}}}


EIGHT = {names.GPUSHARE_MEMORY: "8"}
FIRST = {"name": "first", "restartPolicy": "Always", "resources": {"limits": EIGHT}}
SIDECARS = owner({})
SIDECARS["spec"]["template"]["spec"]["initContainers"] = [{"name": "zero"}, FIRST]
OWNERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "limits": (owner({"limits": EIGHT}), {}),
    "limits and requests": (owner({"limits": EIGHT, "requests": EIGHT | {"cpu": "1"}}), {}),
    "a sidecar": (SIDECARS, {"key": NEED_KEY._replace(container="first")}),
    "a CronJob": (
        {"spec": {"jobTemplate": owner({"limits": ONE_GPU})}},
        {"key": NEED_KEY._replace(kind="CronJob")},
    ),
    "said already": (owner({"limits": {names.GPUSHARE_MEMORY: "6"}}), {}),
    "unsaid": (owner({"limits": {MIG: "1"}}), {}),
}


def patched(
    raw: dict[str, Any], changes: dict[str, Any], *, burst: bool = False
) -> tuple[OwnerPatch | None, list[str]]:
    """Patch an owner, and write the patch and what is noted beside it."""
    patch, notes = patch_of([need_summary(**changes)], raw, T4, burst=burst)
    lines = [f"  note: {note}" for note in notes]
    if patch is not None:
        comments = (f"  # {line}" for line in (patch.command, *patch.comments))
        lines += [*comments, f"  {json.dumps(patch.body)}"]
    return patch, lines


def test_patches_are_those_reviewed() -> None:
    """A strategic merge where the amount stands; requests follow limits; no change is no patch."""
    patch, _ = patched(*OWNERS["limits"])
    assert patch is not None
    component = [json.dumps(kustomization([patch], ["TEXT"]))]
    cases = {title: patched(*case)[1] for title, case in OWNERS.items()}

    assert_cases(FILES / "patches.txt", {**cases, "as a component": component})


def test_the_card_on_which_it_needs_most_counts() -> None:
    """One amount serves all models of card, and none where one of them is not known."""
    other = need_summary(key=NEED_KEY._replace(card="NVIDIA L4"), target_bytes=7 * GIB)
    unknown = need_summary(target_bytes=None)

    assert {"server": 7 * GIB} == targets_of([need_summary(), other])
    assert [{}, {}] == [targets_of([other, unknown]), targets_of([unknown, other])]


def share(name: str, amount: int, card: str = "GPU-0") -> PodShare:
    return PodShare(name, card, "T4", amount * GIB, by_target=True)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], 0),
        ([share("a", 6), share("b", 5), share("c", 5), share("d", 4)], 2),
        ([share("a", 6), share("b", 6)], 2),
        ([share("a", 1), share("a", 1, "GPU-1")], 2),
        ([share("a", 40), share("b", 1)], 2),
    ],
    ids=["none", "full", "too large", "two of one pod", "larger than a card"],
)
def test_the_largest_are_packed_first(shares: list[PodShare], expected: int) -> None:
    """Each goes to the first card with room, and no pod gets one card twice."""
    assert expected == cards_needed(shares, 10 * GIB)


@given(st.lists(st.integers(1, 10), max_size=12))
def test_no_packing_is_better_than_the_sum_or_worse_than_its_bound(sizes: list[int]) -> None:
    """First fit decreasing needs at least the sum's cards, and at most twice as many and one."""
    needed = cards_needed([share(str(at), size) for at, size in enumerate(sizes)], 10 * GIB)

    assert -(-sum(sizes) // 10) <= needed <= 2 * -(-sum(sizes) // 10) + 1


def seen(*rows: PodRow) -> dict[str, Snapshot]:
    return {"gpu-1": snapshot(*rows, cards=(card_row(), card_row(1)))}


def of(*owners: str, **changes: Any) -> tuple[PodRow, ...]:
    return tuple(
        pod_row(use_row(**changes), namespace="vision", uid=f"u{at}", owner=owner)
        for at, owner in enumerate(owners)
    )


SET = "ReplicaSet/classifier-7d9f8b6c4d"
ALONE = pod_row(use_row(card="GPU-1"), uid="u9", owner="", name="alone")
NOWHERE = pod_row(use_row(card="GPU-gone"), uid="u9")
MIXED = seen(*of(SET, SET, "Job/train"), ALONE)
CLASSIFIER = seen(*of("Deployment/classifier"))
ITS = need_summary()
SIDE = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=GIB)
NO_SIDE = SIDE._replace(target_bytes=None)
NEW, OLD = (
    need_summary(key=NEED_KEY._replace(container=name), target_bytes=size * GIB, last_day=day)
    for name, size, day in (("new", 4, "2026-11-19"), ("old", 6, "2026-11-16"))
)
PACKINGS = {
    "pods of an owner by its target": packings(MIXED, [ITS], ""),
    "of one namespace": packings(MIXED, [ITS], "vision"),
    "a container without a target": packings(CLASSIFIER, [ITS, NO_SIDE], ""),
    "a container without a target, first": packings(CLASSIFIER, [NO_SIDE, ITS], ""),
    "containers add up": packings(CLASSIFIER, [ITS, SIDE], ""),
    "one that is gone does not": packings(CLASSIFIER, [NEW, OLD], ""),
    "unknown": packings(seen(*of("", limit_bytes=None, used_bytes=None), NOWHERE), [], ""),
}


def test_packings_are_those_reviewed() -> None:
    """What has no target counts by its limit, and what is unknown or gone is left out."""
    cases = {title: [f"  {each}" for each in found] for title, found in PACKINGS.items()}

    assert_cases(FILES / "packings.txt", cases)


@pytest.mark.parametrize(("confidence", "lines"), [(Confidence.LOW, 1), (Confidence.MEDIUM, 0)])
def test_what_is_measured_too_little_is_said_once(confidence: Confidence, lines: int) -> None:
    """One line says why there is no target, however many have none."""
    found = unsure([need_summary()._replace(confidence=confidence)] * 2)

    assert lines == len(found)
    assert all("no target at low confidence" in line for line in found)


HOSTILE = '"><script>alert(1)</script>\x1b[31m'
PACKED = Packing("Tesla T4", 15 * GIB, 4, 3, 1, 5, 2, 12 * GIB)
NO_TARGET, NONE_FREED = PACKED._replace(model="L4", by_target=0), PACKED._replace(needed=4)
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """What a browser would make of a page; what is left open or closed twice is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.pop()


def model(**changes: Any) -> ModelDays:
    return ModelDays(need_summary(**changes), tuple(need_day(number) for number in range(1, 9)))


def written(
    *models: ModelDays, cards: tuple[Packing, ...] = (), notes: tuple[str, ...] = ()
) -> str:
    return "\n".join(page(models, cards, "all namespaces", notes, page_style()))


CAPPED = ModelDays(need_summary(capped=True, target_bytes=None))
LOW = ModelDays(need_summary(target_bytes=None, confidence=Confidence.LOW))
PAGES = {
    "two models": written(
        model(), LOW, cards=(PACKED, NO_TARGET, NONE_FREED), notes=("one is silent",)
    ),
    "a request": written(model(request_bytes=2 * GIB)),
    "no days": written(CAPPED),
    "no models": written(notes=("no agent has measured a model yet",)),
}


def test_pages_are_those_reviewed() -> None:
    """Figures, cards that targets would free, notes, and no picture or legend without days."""
    cases = {title: text.replace(page_style(), "").splitlines() for title, text in PAGES.items()}

    assert_cases(FILES / "pages.txt", cases)


@pytest.mark.parametrize("title", PAGES)
def test_a_page_is_whole_and_fetches_nothing(title: str) -> None:
    """Every element is closed, there is no script, and nothing points outside of the page."""
    text = PAGES[title]

    assert "script" not in {tag for tag, _ in Outline(text).elements}
    assert not re.search(r"(?i)https?:|src=|url\(|@import", text)
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    for place in ("prefers-color-scheme: dark", "max-width: 60rem", "@media print"):
        assert place in text


def test_names_are_text_whatever_they_are() -> None:
    """No name becomes an element, an attribute or a control character."""
    key = NEED_KEY._replace(namespace=HOSTILE, kind=HOSTILE, name=HOSTILE, container=HOSTILE)
    hostile = model(key=key._replace(card=HOSTILE), reasons=NeedReasons(HOSTILE, HOSTILE, HOSTILE))
    cards = PACKED._replace(model=HOSTILE)
    text = "\n".join(page([hostile], [cards], HOSTILE, [HOSTILE], page_style()))

    plain = written(model(), cards=(PACKED,), notes=("a",))
    assert Outline(plain).elements == Outline(text).elements
    assert "\x1b" not in text


def day(number: int, held: int = 4 * GIB, **changes: Any) -> ChartDay:
    plain = ChartDay(f"2026-11-{number:02}", held, 5 * GIB, 8 * GIB, 0, out_of_memory=False)
    return plain._replace(**changes)


def bare(number: int, held: int = 4 * GIB) -> ChartDay:
    return day(number, held, told_bytes=None, limit_bytes=None)


ROWS = (
    need_day(2, told_bytes=None, limit_bytes=None, evictions=1),
    need_day(1),
    need_day(2, peak_bytes=GIB, told_bytes=GIB, shares=3, evictions=2),
    need_day(1, told_bytes=GIB, out_of_memory_limit_bytes=GIB, shares=0),
    need_day(3, told_bytes=None, limit_bytes=None),
)
CHARTS: dict[str, tuple[tuple[ChartDay, ...], int | None]] = {
    "rows of one day are one bar": (tuple(chart_days(ROWS)), None),
    "bars and lines": ((day(1), day(2, 9 * GIB)), 6 * GIB),
    "a day long before": ((day(1)._replace(day="1970-01-01"), bare(9)), None),
    "dates within": ((day(1), day(28)), None),
    "holes": (
        (day(1), day(2, limit_bytes=9 * GIB), day(3, limit_bytes=None), day(4), day(6)),
        None,
    ),
    "marks": ((day(1, evictions=2, out_of_memory=True), day(2, evictions=1), day(3)), None),
    **{
        f"up to {size} MiB": ((bare(1, size * MIB),), None)
        for size in (100, 1536, 3 * 1024, 13 * 1024, 70 * 1024, 130 * 1024)
    },
    "dates of five": (tuple(bare(number) for number in range(1, 6)), None),
    "dates of many": (tuple(bare(number) for number in range(1, 15)), None),
}


def test_charts_are_those_reviewed() -> None:
    """Bars red above the limit, lines with holes, round steps, dates where there is room, words."""
    cases = {
        title: chart(days, target, "Deployment/classifier").replace("><", ">\n<").splitlines()
        for title, (days, target) in CHARTS.items()
    }

    assert_cases(FILES / "charts.txt", cases)


def test_days_are_counted_as_calendars_do() -> None:
    """Months, years and leap days are as long as they are."""
    start = dt.date(2027, 12, 1)
    counted = [ordinal((start + dt.timedelta(days=n)).isoformat()) for n in range(500)]

    assert list(range(counted[0], counted[0] + 500)) == counted
