"""The explanation of a pod as JSON."""

from gpufence import names
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import PodActivityRow
from kubectl_gpufence.verbs.explain.document import document
from kubectl_gpufence.verbs.explain.record import AgentEvent, PodRecord
from tests.support.builders import gpushare
from tests.support.plugin import agent, pod_row, seen_pod, snapshot, use_row
from tests.support.plugin_cases import holding


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
        "over": 12.0,
        "due": 18.0,
        "processes": [{"pid": 41, "container": "trainer", "used": "3500Mi"}],
    } == told["measured"]["cards"][0]  # type: ignore[index]  # JSON


def test_what_nobody_knows_is_null_and_says_why() -> None:
    """A pod that no agent measures has no cards, never zero of them used."""
    told = document(PodRecord(seen_pod(mode=None), None, agent(None, "it does not answer in time")))

    assert told["mode"] is None
    assert {
        "unknown": "Unknown: it does not answer in time.",
        "stale": None,
        "activity": None,
        "cards": [],
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
    event = AgentEvent("2026-01-02T03:04:05Z", names.LIMIT_EXCEEDED, 3, f"held {GIB // MIB} MiB")
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
