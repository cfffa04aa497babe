"""
What holds for all tests: no deadline for an example on a machine that may be busy, long first, what
computes between what waits, and coverage where it is needed, since it slows down by half.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from coverage import Coverage
from hypothesis import settings

from tests.support import running
from tests.support.running import Running, examples
from tools import ROOT

LONG_FIRST: Final = (
    "tests/integration/agent/chaos/",
    "tests/adversary/test_live",
    "tests/integration/test_story",
    "tests/integration/controller/",
    "tests/integration/deploy/test_apply",
    "tests/integration/claims/",
    "tests/integration/certs/",
    "tests/integration/agent/",
    "tests/integration/plugin/",
    "tests/integration/",
    "tests/contract/",
    "tests/http/",
)
COMPUTING: Final = (
    "tests/adversary/test_judge",
    "tests/golden/",
    "tests/manifests/",
    "tests/property/",
    "tests/unit/",
)
WAITING_PART: Final = 0.85
"""
So far into the list what waits is spread; after that there are only short files, for a common end.
"""

EVERYTHING: Final = "GPUFENCE_COVER_EVERYTHING" in os.environ
COVERED: Final = ("tests/golden/", "tests/http/", "tests/unit/")
"""What reaches the branches of pure modules; to follow all tests takes a fifth more CPU time."""
UNCOVERED: Final = ("tests/property/", "tests/adversary/test_judge", "tests/unit/house/test_style")

pytest.register_assert_rewrite("tests.support.golden")
settings.register_profile("gpufence", examples())
settings.load_profile("gpufence")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and programs under test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Leave out what this machine lacks something for. Begin with what takes long, so that no worker
    is left alone with it at the end, and deal out between it what computes, so that cores have work
    while others wait.

    Within a folder the order stays random.
    """
    running.try_what_can_be(config, items)
    items.sort(key=lambda item: _place(item.nodeid, LONG_FIRST))
    when = _spread([item.nodeid.partition("::")[0] for item in items])
    items.sort(key=lambda item: when[item.nodeid.partition("::")[0]])
    for item in items:
        if item.nodeid.startswith(UNCOVERED) or not (EVERYTHING or item.nodeid.startswith(COVERED)):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    running.hear_of_worker(node.config, node.workeroutput)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    counts: dict[str, int] = config.stash.get(running.NOT_TRIED, {})
    for line in running.sentences(counts):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """
    Fail a test that leaves a thread or a child process behind, which would run beside others.

    Fixtures of a wider scope are set up before this one, and may keep theirs until they end.
    """
    before = Running.now()
    yield
    left = before.left_for_good()
    if left:
        pytest.fail(f"left behind: {', '.join(left)}")


@pytest.fixture(scope="module")
def followed() -> Iterator[None]:
    """
    Cover the programs that a module's tests start, as far as they end by themselves or by SIGTERM,
    where everything is covered.

    It costs each of them half a second, so where many tests start the same one, few follow it.
    """
    with pytest.MonkeyPatch.context() as patch:
        if EVERYTHING and Coverage.current() is not None:
            patch.setenv("COVERAGE_PROCESS_START", str(ROOT / "pyproject.toml"))
        yield


def _spread(paths: Sequence[str]) -> dict[str, float]:
    """
    Return when each file has its turn, between 0 and 1: those that wait and those that compute each
    in their order, and both all the time.
    """
    when: dict[str, float] = {}
    for computing, part in ((False, WAITING_PART), (True, 1.0)):
        kind = [each for each in dict.fromkeys(paths) if each.startswith(COMPUTING) is computing]
        when |= {path: part * place / len(kind) for place, path in enumerate(kind)}
    return when


def _place(nodeid: str, prefixes: Sequence[str]) -> int:
    found = (place for place, prefix in enumerate(prefixes) if nodeid.startswith(prefix))
    return next(found, len(prefixes))
