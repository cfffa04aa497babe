"""Containers that have failed, and pods that are gone, as `explain` shows them."""

from typing import Any

import pytest

from gpufence import names
from gpufence.capped import Ending
from kubectl_gpufence.endings import read_endings, what_helps
from kubectl_gpufence.pods import SeenEvent, read_recorded
from kubectl_gpufence.verbs.explain.gone import Gone, gone_document, gone_lines, is_about, made_like
from kubectl_gpufence.view import Display
from tests.support.builders import gpushare
from tests.support.plugin import raw_pod

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
REFUSED = "error running createRuntime hook #0: nvidia-ctk: nvmlDeviceSetMemoryLimits_v1"
EVENT = SeenEvent("2026-01-02T03:04:05Z", names.EVICTED, 1, "over", "team-a/Pod/worker-7d9f-x2x4k")


def failed(code: int = 1, message: str = "", **changes: Any) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": "Error", "finishedAt": "2026-01-02T03:04:05Z"}
    status = {"name": "trainer", "restartCount": 3, "lastState": {"terminated": ended}}
    ended |= {"message": message} if message else {}
    return {"status": {"containerStatuses": [status | changes]}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (failed(), "container trainer ended with exit code 1 at 2026-01-02T03:04:05Z, restarted 3"),
        (
            failed(state={"waiting": {"reason": "CrashLoopBackOff"}}),
            "3 times, now CrashLoopBackOff",
        ),
        (
            failed(message=OOM, restartCount=1),
            'restarted once; it said "CUDA out of memory. Tried',
        ),
        (
            failed(0, state={"waiting": {"reason": "RunContainerError", "message": REFUSED}}),
            "not be started at 2026-01-02T03:04:05Z, restarted 3 times, now RunContainerError",
        ),
        (
            {"status": {"initContainerStatuses": failed()["status"]["containerStatuses"]}},
            "container trainer ended with exit code 1",
        ),
    ],
)
def test_a_container_that_failed_is_shown(raw: dict[str, Any], expected: str) -> None:
    """Its code, how often, what it waits for, and its words for a GPU without memory."""
    (ending,) = read_endings(raw)

    assert expected in ending.sentence


@pytest.mark.parametrize("raw", [{}, failed(0), {"status": {"containerStatuses": [{"name": "a"}]}}])
def test_what_runs_or_ended_well_is_no_failure(raw: dict[str, Any]) -> None:
    """Nothing is said of containers that have not failed."""
    assert () == read_endings(raw)


def helped(message: str, annotations: dict[str, str], container: str = "trainer") -> str:
    raw = raw_pod(gpushare("trainer", 8), annotations=annotations)
    plan = read_recorded(raw["metadata"]["annotations"]).plan
    ending = Ending(container, 1, "Error", "", 0, out_of_memory=message)
    return " ".join(what_helps([ending], plan))


@pytest.mark.parametrize(
    ("message", "annotations", "container", "expected"),
    [
        (
            "CUDA out of memory",
            {},
            "trainer",
            "of 8192Mi asked for, it may allocate 5734Mi",
        ),
        (
            "CUDA out of memory",
            {},
            "trainer",
            "gpufence.io/headroom: auto allows 6656Mi",
        ),
        ("", {}, "trainer", "why container trainer ended: `kubectl logs --previous -c trainer`"),
        ("CUDA out of memory", {}, "other", "which nothing here caps"),
        (
            "CUDA out of memory",
            {names.PROCESSES_PER_CARD: "2", names.HEADROOM: "auto"},
            "trainer",
            "each of its processes may allocate 3328Mi",
        ),
    ],
)
def test_what_a_cap_has_to_do_with_it_is_said_with_its_amounts(
    message: str, annotations: dict[str, str], container: str, expected: str
) -> None:
    """Which amount was given, why it is less than the limit, and what allows more."""
    assert expected in helped(message, annotations, container)


def test_the_smaller_headroom_is_offered_where_it_allows_more() -> None:
    """A pod that has it already, and one that gets no more by it, are not sent there."""
    small = raw_pod(gpushare("trainer", 2))
    plan = read_recorded(small["metadata"]["annotations"]).plan
    ending = Ending("trainer", 1, "Error", "", 0, out_of_memory="CUDA out of memory")

    assert "headroom: auto allows" not in helped("x", {names.HEADROOM: "auto"})
    assert "headroom: auto allows" not in " ".join(what_helps([ending], plan))
    assert [] == list(what_helps([ending._replace(out_of_memory="", container="sidecar")], None))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([("worker-7d9f-aaaaa", "worker-7d9f-"), ("other-1", "other-")], ("worker-7d9f-aaaaa",)),
        ([("worker-88aa-bbbbb", "worker-88aa-"), ("bare", "")], ("worker-88aa-bbbbb",)),
        ([("other-1", "other-")], ()),
    ],
)
def test_pods_made_like_one_that_is_gone_are_found(
    pods: list[tuple[str, str]], expected: tuple[str, ...]
) -> None:
    """Those of its own template come first, then those of the Deployment's next one."""
    assert expected == made_like("worker-7d9f-x2x4k", pods)


def test_a_short_name_has_no_pod_like_it() -> None:
    """A name that the API server did not make tells nothing of others."""
    assert () == made_like("web", [("web-1", "web-")])


@pytest.mark.parametrize(
    ("about", "expected"),
    [("n/Deployment/worker", True), ("n/Pod/worker-7d9f-x", True), ("n/Pod/workers", False)],
)
def test_an_event_is_about_an_owner_by_its_name(about: str, *, expected: bool) -> None:
    """Events about what a Deployment has made begin with its name."""
    assert expected == is_about(EVENT._replace(about=about), "worker")


def test_what_is_left_of_a_pod_is_shown() -> None:
    """Its Events, and the pod that came after it as a command to type."""
    gone = Gone("team-a", "pod worker-7d9f-x2x4k", (EVENT,), ("worker-7d9f-b", "worker-7d9f-c"))
    text = "\n".join(gone_lines(gone, Display()))

    assert "pod worker-7d9f-x2x4k in namespace team-a: it is gone. Its Events are left." in text
    assert "2026-01-02T03:04:05Z GPUMemoryEvicted: over" in text
    assert "`kubectl gpufence explain -n team-a worker-7d9f-b` (also\n    worker-7d9f-c)" in text
    assert ["worker-7d9f-b", "worker-7d9f-c"] == gone_document(gone)["successors"]


def test_an_owner_without_pods_is_told_of_by_its_events() -> None:
    """Without a successor the last Event is where to look."""
    text = "\n".join(gone_lines(Gone("team-a", "Deployment worker", (EVENT,)), Display()))

    assert "Deployment worker in namespace team-a: it has no pod at the moment." in text
    assert "Its last Event says what to change" in text


def test_an_owner_of_which_nothing_is_left_is_no_riddle() -> None:
    """Without any Event that is said, and no last one is referred to."""
    text = "\n".join(gone_lines(Gone("team-a", "Deployment worker"), Display()))

    assert "No Event is left that says why." in text
    assert "EVENTS" not in text
    assert "Create it again" in text
