"""The page of all models as a real browser shows it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpufence.need import Confidence, NeedKey, NeedReasons
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.verbs.recommend import page_style
from kubectl_gpufence.verbs.recommend.lines import Packing
from kubectl_gpufence.verbs.recommend.page import ModelDays, page
from tests.support.browser import FAULTS, Chromium, Tab
from tests.support.builders import NEED_KEY, need_day, need_summary
from tests.support.observing import wait_until

pytestmark = pytest.mark.needs("chromium")
HOSTILE = '"><script>alert(1)</script><img src=http://192.0.2.1/x onerror=alert(1)>\x1b[31m'
WIDE = "w" * 253
DAYS = tuple(need_day(number, evictions=number % 2) for number in range(1, 15))
UNSURE = need_summary(
    target_bytes=None, limit_bytes=None, confidence=Confidence.LOW, reasons=NeedReasons(*"abc")
)
PAGES = {
    "nobody": ([], "no agent has measured a model yet"),
    "one": ([ModelDays(need_summary(), DAYS)], ""),
    "without days": ([ModelDays(UNSURE)], "no agent told of any day"),
    "amounts": (
        [
            ModelDays(
                need_summary(target_bytes=None),
                tuple(
                    day._replace(peak_bytes=most, told_bytes=None, limit_bytes=None) for day in DAYS
                ),
            )
            for most in (100 * MIB, 3 * GIB, 10_000 * GIB)
        ],
        "",
    ),
    "many": (
        [
            ModelDays(need_summary(key=NEED_KEY._replace(name=f"model-{number}")), DAYS)
            for number in range(60)
        ],
        "",
    ),
    "hostile": (
        [
            ModelDays(need_summary(key=NeedKey(HOSTILE, HOSTILE, WIDE, HOSTILE, HOSTILE)), DAYS),
            ModelDays(need_summary(key=NeedKey(WIDE, WIDE, WIDE, WIDE, WIDE)), DAYS),
        ],
        HOSTILE + WIDE,
    ),
}


TOLD = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
BESIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Shown(NamedTuple):
    """
    What of a page is beside the window or cannot be read, what the browser said, all it asked for.
    """

    beside: int
    faults: list[str]
    said: list[str]
    asked: list[str]


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with Chromium() as browser, browser.tab() as made:
        yield made


def shown(tab: Tab, page: Path, width: int, scheme: str, media: str = "screen") -> Shown:
    """Show a file, and tell only of what happened since then."""
    names = (*TOLD, "Network.requestWillBeSent", "Page.loadEventFired")
    before = {name: len(tab.happened(name)) for name in names}

    def since(name: str) -> list[dict[str, Any]]:
        return tab.happened(name)[before[name] :]

    tab.resize(width, 900)
    wish = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.send("Emulation.setEmulatedMedia", media=media, features=wish)
    tab.open(page.as_uri())
    wait_until(lambda: since("Page.loadEventFired"), "the page is not loaded")
    said = [json.dumps(about) for name in TOLD for about in since(name)]
    asked = [about["request"]["url"] for about in since("Network.requestWillBeSent")]
    return Shown(tab.run(BESIDE), tab.run(FAULTS), said, asked)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_runs_nothing_and_asks_nobody(tab: Tab, name: str, tmp_path: Path) -> None:
    """
    In a narrow window and a wide one, light and dark, on screen and on paper: no part of it is
    beside the window, every word is whole and readable, nothing is complained of, and nothing else
    is fetched.
    """
    models, note = PAGES[name]
    file = tmp_path / "page.html"
    cards = [] if name == "nobody" else [Packing(f"{HOSTILE}{WIDE}", 0, 4, 3, 1, 5, 2, 0)]
    where = f"namespace {HOSTILE}" if name == "hostile" else "all namespaces"
    text = "\n".join(page(models, cards, where, [note], page_style()))
    file.write_text(text, encoding="utf-8")
    looks = ((360, "light", "screen"), (1280, "dark", "screen"), (720, "light", "print"))
    seen = {look: shown(tab, file, *look) for look in looks}

    assert dict.fromkeys(looks, (0, [], [], [file.as_uri()])) == seen


def test_a_page_that_does_is_noticed(tab: Tab, tmp_path: Path) -> None:
    """One that is too wide, cuts a label, complains and asks somebody is seen as that."""
    file = tmp_path / "page.html"
    label = '<svg viewBox="0 0 360 180"><text x="10" y="50" text-anchor="end">3200 MiB</text></svg>'
    wide = f'<div style="width: 400px">x</div><p style="color: #999">pale</p>{label}'
    file.write_text(f"<p>{wide}<script>console.log(1)</script><img src=x.png>", encoding="utf-8")
    seen = shown(tab, file, 360, "light")

    assert 0 < seen.beside
    assert ["pale: contrast 2.85", "3200 MiB: cut by svg."] == seen.faults
    assert any("consoleAPICalled" in text or '"log"' in text for text in seen.said)
    assert [file.as_uri(), (tmp_path / "x.png").as_uri()] == seen.asked
