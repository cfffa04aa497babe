"""The page of all models as a real browser shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence.need import Confidence, NeedKey, NeedReasons
from kubectl_gpufence.verbs.recommend.freed import Packing
from kubectl_gpufence.verbs.recommend.page import ModelDays, page
from tests.contract.browser.chromium import Tab, browser
from tests.support.needs import NEED_KEY, need_day, need_summary

pytestmark = pytest.mark.needs("chromium")
HOSTILE = '"><script>alert(1)</script><img src=http://192.0.2.1/x onerror=alert(1)>\x1b[31m'
WIDE = "w" * 253
DAYS = tuple(need_day(number, evictions=number % 2) for number in range(1, 15))
UNSURE = need_summary(
    target_bytes=None, limit_bytes=None, confidence=Confidence.LOW, reasons=NeedReasons(*"abc")
)
PAGES = {
    "nobody": ([], "nobody has measured a model yet"),
    "one": ([ModelDays(need_summary(), DAYS)], ""),
    "without days": ([ModelDays(UNSURE)], "no agent told of any day"),
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


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_runs_nothing_and_asks_nobody(tab: Tab, name: str, tmp_path: Path) -> None:
    """
    In a narrow window and a wide one, light and dark, on screen and on paper: no part of it is
    beside the window, nothing is complained of, and nothing else is fetched.
    """
    models, note = PAGES[name]
    file = tmp_path / "page.html"
    cards = [] if name == "nobody" else [Packing(f"{HOSTILE}{WIDE}", 0, 4, 3, 1, 5, 2, 0)]
    where = f"namespace {HOSTILE}" if name == "hostile" else "all namespaces"
    file.write_text("\n".join(page(models, cards, where, [note])), encoding="utf-8")
    looks = ((360, "light", "screen"), (1280, "dark", "screen"), (720, "light", "print"))
    seen = {look: tab.show(file, *look) for look in looks}

    assert dict.fromkeys(looks, (0, [], [file.as_uri()])) == seen


def test_a_page_that_does_is_noticed(tab: Tab, tmp_path: Path) -> None:
    """One that is too wide, complains and asks somebody is seen as that."""
    file = tmp_path / "page.html"
    wide = '<div style="width: 400px">x</div>'
    file.write_text(f"<p>{wide}<script>console.log(1)</script><img src=x.png>", encoding="utf-8")
    seen = tab.show(file, 360, "light")

    assert 0 < seen.beside
    assert any("consoleAPICalled" in text or '"log"' in text for text in seen.said)
    assert [file.as_uri(), (tmp_path / "x.png").as_uri()] == seen.asked
