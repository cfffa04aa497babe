"""
What holds for all tests: no deadline for an example on a machine that may be busy, long first, what
computes between what waits, one control plane for a folder, and coverage where it is needed, since
it slows down by half.
"""

import gc
import os
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from coverage import Coverage
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped] # it ships no types

from tests.support import running
from tests.support.running import Running, examples
from tests.support.tree import files_of_tests, module_name
from tools import ROOT

LONG_FIRST: Final = (
    "tests/integration/agent/chaos/",
    "tests/adversary/test_live",
    "tests/integration/test_story",
    "tests/integration/",
    "tests/contract/",
    "tests/http/",
)
TOGETHER: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "controller": (0.0, ("tests/integration/controller/",)),
    "agent": (
        0.0,
        ("tests/integration/agent/cluster/", "tests/integration/agent/program/"),
    ),
    "deploy": (0.2, ("tests/integration/deploy/",)),
    "others": (
        0.3,
        tuple(
            f"tests/integration/{each}"
            for each in (
                *("certs/", "controlplane/", "kube/", "node/", "plugin/", "webhook/"),
                *("test_claims", "test_dashboards"),
            )
        ),
    ),
    "house": (0.6, ("tests/unit/house/",)),
}
"""
What one worker runs, and when its turn is between 0 and 1: files that share a control plane, which
takes six seconds to start and a core's thirtieth part while nobody asks it for anything, and those
that read the whole tree.
"""
TESTS: Final = "tests"
COMPUTING: Final = (
    "tests/adversary/test_judge",
    "tests/golden/",
    "tests/manifests/",
    "tests/property/",
    "tests/unit/",
)
WAITING_PART: Final = 0.85
"""So far into the list what waits is spread; then only short files follow, for a common end."""

EVERYTHING: Final = "GPUFENCE_COVER_EVERYTHING" in os.environ
COVERED: Final = ("tests/golden/", "tests/http/", "tests/unit/")
"""What reaches the branches of pure modules; a test that is followed takes twice the CPU time."""
UNCOVERED: Final = (
    *("tests/property/", "tests/adversary/test_judge", "tests/unit/test_running"),
    *("tests/unit/agent/loop/test_churn", "tests/unit/agent/cluster/test_pod_index"),
    "tests/unit/agent/concerns/test_shown.py::test_pods_that_swing_for_an_hour",
    *(f"tests/unit/house/test_{each}" for each in ("ledger", "modules", "pages", "style", "words")),
)

FOLLOWING: Final = pytest.StashKey[Coverage]()

pytest.register_assert_rewrite("tests.support.golden")
settings.register_profile("gpufence", examples())
settings.load_profile("gpufence")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and programs under test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """
    Search for no garbage in what is being collected, which is a third of the time of collecting;
    and let each worker import other files first, since in a new tree to compile all of them takes
    ten seconds. Only that part is followed: some of what is covered is called by what tests are
    made of.
    """
    told = getattr(session.config, "workerinput", None)
    if told is None and session.config.getvalue("dist") != "no":
        return  # workers collect
    gc.disable()
    if told is None or [Path(each).name for each in session.config.args] != [TESTS]:
        return
    number, count = int(told["workerid"].removeprefix("gw")), told["workercount"]
    files = [path for path in files_of_tests() if path.name.startswith("test_")]
    for path in files[number::count]:
        with suppress(Exception):  # collecting it says so
            import_module(module_name(path))
    _follow_tests_only(session.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the tests that were collected be no part of what is searched for garbage."""
    _follow_tests_only(session.config)
    gc.enable()
    gc.collect()
    gc.freeze()


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
    when = _spread([_unit(item.nodeid.partition("::")[0]) for item in items])
    items.sort(key=lambda item: when[_unit(item.nodeid.partition("::")[0])])
    for item in items if EVERYTHING else ():
        if item.nodeid.startswith(UNCOVERED):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    with _followed(pyfuncitem.config, pyfuncitem.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_fixture_setup(
    request: pytest.FixtureRequest,
) -> Generator[None, object, object]:
    with _followed(request.config, request.node.nodeid):
        return (yield)


class Together(LoadFileScheduling):  # type: ignore[misc] # as above
    """Hands out files, and what belongs together to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


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


def _follow_tests_only(config: pytest.Config) -> None:
    """Stop what follows all that is done; a worker has one that is never asked, beside its own."""
    last = Coverage.current()
    if last is None or EVERYTHING or FOLLOWING in config.stash:
        return
    config.stash[FOLLOWING] = last
    while (each := Coverage.current()) is not None:
        each.stop()


@contextmanager
def _followed(config: pytest.Config, nodeid: str) -> Iterator[None]:
    """Follow what a test calls and what it is given, but not what pytest does around that."""
    coverage = config.stash.get(FOLLOWING, None)
    wanted = nodeid.startswith(COVERED) and not nodeid.startswith(UNCOVERED)
    if coverage is None or not wanted or Coverage.current():
        yield
        return
    coverage.start()
    try:
        yield
    finally:
        coverage.stop()


def _unit(path: str) -> str:
    """Name what stays on one worker with a file: itself, or all of its group."""
    found = (name for name, (_, folders) in TOGETHER.items() if path.startswith(folders))
    return next(found, path)


def _spread(units: Sequence[str]) -> dict[str, float]:
    """Return when each has its turn, from 0 to 1: what waits and what computes, side by side."""
    when = {name: moment for name, (moment, _) in TOGETHER.items()}
    for computing, part in ((False, WAITING_PART), (True, 1.0)):
        files = [each for each in dict.fromkeys(units) if each not in TOGETHER]
        kind = [each for each in files if each.startswith(COMPUTING) is computing]
        when |= {path: part * place / len(kind) for place, path in enumerate(kind)}
    return when


def _place(nodeid: str, prefixes: Sequence[str]) -> int:
    found = (place for place, prefix in enumerate(prefixes) if nodeid.startswith(prefix))
    return next(found, len(prefixes))
