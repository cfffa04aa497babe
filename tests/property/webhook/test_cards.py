"""What is right on whichever card: servers' own sums, and nodes that are born in any order."""

import argparse
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.limits import Limits, read_limits
from gpufence.plan import Plan, read_plan
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.share import reserve_bytes
from tests.support.builders import CARDS, Sold, card, container, labels_of, node, pod
from tests.support.rewriting import (
    absent,
    applied,
    decide,
    environment,
    gpu_node,
    rewritten,
    variables,
)
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite import Rewrite
from webhook.rewrite.binding import exact_values

SIZES = (11264, 15360, 16384, 23034, 40960, 46068, 81559, 143771)
ENGINES: dict[str, dict[str, Any]] = {
    "vllm": {"command": ["vllm", "serve", "m"]},
    "sglang": {"command": ["sglang", "serve", "m"]},
    "tgi": {"command": ["text-generation-launcher"]},
    "tensorrt-llm": {"command": ["trtllm-serve", "m"]},
    "tf-serving": {"command": ["tensorflow_model_server"]},
    "nim": {"image": "nvcr.io/nim/meta/m:2.0.1"},
    "ollama": {"image": "ollama/ollama:0.12.6"},
    "llama-cpp": {"command": ["llama-server"]},
    "lmdeploy": {"command": ["lmdeploy", "serve", "api_server", "m"]},
    "comfyui": {"command": ["python", "/ComfyUI/main.py"]},
    "dask-cuda": {"command": ["dask-cuda-worker", "s", "--rmm-pool-size=1MB"]},
}


def seen(engine: str, card: int, capability: tuple[int, int], limit: int, n: int) -> dict[str, str]:
    """Return what a server reads on a card, its limit in MiB; nothing where that leaves no room."""
    item = container("main", **{names.NVIDIA_GPU: "1"}) | {"image": "x"} | ENGINES[engine]
    said = {
        names.MEMORY: f"{limit}Mi",
        names.ARGS: "enabled",
        names.PROCESSES_PER_CARD: str(n),
    }
    policy = WebhookPolicy(default=CandidateCard(Units(), card * MIB, capability))
    result, outcome = rewritten(pod(item, annotations=said), policy=policy)
    assume(not any("is too little" in text for text in outcome.warnings))
    assert engine == outcome.plan.containers["main"].runs
    return {name: text for name, text in environment(result).items() if text is not None}


def takes(engine: str, env: dict[str, str], card: int) -> Fraction:
    """
    Return what one process takes for itself beside its context, of a card that is empty otherwise
    and, where the formula is about what weights leave free, for a model of no weight.
    """
    if engine == "ollama":
        return Fraction(card - int(env[names.OLLAMA_OVERHEAD]))
    if engine == "llama-cpp":
        return Fraction(card - int(env[names.LLAMA_FIT]) * MIB)
    if engine == "comfyui":
        return card - Fraction(env[names.ENV_SERVER_MEMORY]) * GIB
    if engine == "dask-cuda":
        return Fraction(env[names.ENV_SERVER_MEMORY])
    if engine == "nim":
        return Fraction(env[names.NIM_ARGS].rpartition("=")[2]) * card
    return Fraction(env[names.TGI_FRACTION if engine == "tgi" else names.ENV_SERVER]) * card


@pytest.mark.parametrize("engine", ENGINES)
@given(
    card=st.sampled_from(SIZES),
    capability=st.sampled_from([(7, 5), (8, 6), (9, 0)]),
    limit=st.integers(1024, 150_000),
    processes=st.integers(1, 3),
)
def test_what_a_server_takes_and_its_context_fit_the_limit(
    engine: str, card: int, capability: tuple[int, int], limit: int, processes: int
) -> None:
    """
    What each process takes by its engine's formula, with its context, sums to no more than the
    limit.
    """
    env = seen(engine, card, capability, limit, processes)
    each = takes(engine, env, card * MIB) + reserve_bytes(capability)

    assert processes * each <= min(limit, card) * MIB


@given(st.lists(st.sampled_from(["--port=1", "--model", "m", "-x", "--gpu-memory-utilization=1"])))
def test_an_appended_flag_is_the_one_that_counts(before: list[str]) -> None:
    """A parser of Python's, as vLLM and SGLang have one, takes the value that stands last."""
    item = container("main", **{names.NVIDIA_GPU: "1"})
    item |= {"image": "x", "command": ["vllm", "serve", "m"], "args": before}
    said = {names.MEMORY: "6Gi", names.ARGS: "enabled"}
    result, _ = rewritten(pod(item, annotations=said))
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu-memory-utilization")
    parsed, _ = parser.parse_known_args(result["spec"]["containers"][0]["args"])

    assert "$(GPUFENCE_SERVER_FRACTION)" == parsed.gpu_memory_utilization


class Birth(NamedTuple):
    """A node: its cards, what its labels say of them at birth, and whether its agent has come."""

    sold: Sold
    labels: dict[str, str]
    agent: bool

    def manifest(self, name: str) -> dict[str, Any]:
        cards = [card(0, memory_bytes=self.sold.shown * MIB)] if self.agent else []
        offered = {names.NVIDIA_GPU: "8", names.GPUSHARE_MEMORY: str(self.sold.shown // 1024)}
        return node(*cards, name=name, labels=self.labels, allocatable=offered)


KINDS = (
    *("nothing", "pool", "karpenter", "karpenter, memory alone", "eks", "gke", "product"),
    "measured",
)
births = st.builds(
    lambda sold, kind, agent: Birth(sold, labels_of(kind, sold), agent),
    st.sampled_from([each for each in CARDS if each.shown > 4096]),
    st.sampled_from(KINDS),
    st.booleans(),
)
_parts = st.builds(
    lambda kind: Birth(CARDS[7], labels_of(kind, CARDS[7]), agent=False),
    st.sampled_from([kind for kind in KINDS if kind not in ("product", "gke")]),
)
_env = st.sampled_from(
    [
        {},
        {names.XLA_FRACTION: "0.9"},
        {names.XLA_FRACTION: "0.002"},
        {names.PYTORCH_CONF: "per_process_memory_fraction:0.8"},
    ]
)
_asked = st.sampled_from(
    [
        ({names.GPUSHARE_MEMORY: "3"}, {}, {}),
        ({names.NVIDIA_GPU: "1"}, {names.MEMORY: "2Gi"}, {}),
        ({names.NVIDIA_GPU: "1"}, {names.MEMORY: "9Gi", names.HEADROOM: "auto"}, {}),
        ({}, {names.KAI_FRACTION: "0.25"}, {}),
        ({}, {names.KAI_MEMORY: "3000"}, {}),
        ({names.NVIDIA_GPU: "1"}, {}, {names.GKE_CLIENTS: "4"}),
        ({names.NVIDIA_GPU: "1"}, {}, {}),
    ]
)
_servers: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"image": "vllm/vllm-openai:v0.11.0", "args": ["--model", "m"]},
        {"image": "vllm/vllm-openai:v0.11.0", "args": ["--gpu-memory-utilization=0.5"]},
        {"image": "ghcr.io/ggml-org/llama.cpp:server-cuda", "args": ["-m", "m.gguf"]},
        {"image": "ollama/ollama:0.20.0"},
    ]
)
_namespaces = st.sampled_from(
    [
        {names.IMPLIED_LIMITS: "enabled"},
        {names.IMPLIED_LIMITS: "enabled", names.MAX_MEMORY: "2Gi"},
        {names.IMPLIED_LIMITS: "enabled", names.MAX_BURST: "200%"},
    ]
)
_bursts = st.sampled_from(["", "card", "6Gi", "150%"])


@st.composite
def asks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw pods of every kind of limit, some of which say something themselves."""
    resources, annotations, selector = draw(_asked)
    item: dict[str, Any] = (
        container(**resources) | draw(_servers) | {"env": variables(**draw(_env))}
    )
    said, burst = dict(annotations), draw(_bursts)
    if draw(st.booleans()):
        said[names.ARGS] = "enabled"
    if burst:
        said |= {names.BURST: burst, names.PYTHON_HOOK: "enabled"}
    return pod(item, annotations=said, nodeSelector=selector)


@given(
    asks(),
    _namespaces,
    st.lists(births, max_size=3),
    births | _parts,
    st.sampled_from([None, 15360 * MIB, 81920 * MIB]),
)
def test_what_is_told_is_within_the_limit_on_the_card_it_lands_on(
    asked: dict[str, Any],
    namespace: dict[str, str],
    known: list[Birth],
    landed: Birth,
    default: int | None,
) -> None:
    """
    Whatever nodes there were, and wherever a pod lands, nothing told is above its limit, nor above
    its request where that is a server that gives nothing back.
    """
    policy = WebhookPolicy(default=CandidateCard(Units(), default))
    fleet = Fleet([gpu_node(each.manifest(f"node-{at}")) for at, each in enumerate(known)])
    said = decide(asked, namespace=namespace, fleet=fleet, policy=policy)
    if not isinstance(said, Rewrite):
        return
    bound = applied(asked, said)
    where = gpu_node(landed.manifest("late"))
    bound["metadata"]["annotations"] |= exact_values(bound, where, policy)

    _assert_within(bound, namespace, landed, where.units)
    assert [] == absent(bound)


def _assert_within(
    bound: dict[str, Any], namespace: dict[str, str], landed: Birth, units: Units
) -> None:
    annotations = bound["metadata"]["annotations"]
    plan = read_plan(annotations[names.PLAN])
    read = read_pod(bound)
    options = read_pod_options(read.annotations, frozenset(["main"]))
    size = landed.sold.shown * MIB
    limits = read_limits(
        read, options, read_namespace_options(namespace), CandidateCard(units, size)
    )
    if isinstance(limits, Limits) and limits.limit_bytes is not None:
        keeps = plan.containers["main"].runs
        most = limits.request_bytes if keeps else limits.limit_bytes
        for form, text in _told(plan, annotations):
            assert _amount(form, text, size) <= (most or 0), (form, text)


def _told(plan: Plan, annotations: dict[str, str]) -> list[tuple[str, str]]:
    rows = [row for item in plan.containers.values() for row in item.settings if row.slot]
    told = [(row.form, annotations.get(f"{names.ENV_PREFIX}{row.slot}", "")) for row in rows]
    return [(form, text) for form, text in told if text and form != "fixed"]


def _amount(form: str, text: str, size: int) -> Fraction:
    """Return how many bytes of a card a framework takes that is told so."""
    number = text.rpartition("per_process_memory_fraction:")[2].split(",")[0]
    if form in ("fraction", "share", "pytorch"):
        return Fraction(number) * size
    scale = {
        "bytes": 1,
        "mebibytes": MIB,
        "julia": MIB,
        "left-bytes": 1,
        "left-mebibytes": MIB,
    }[form]
    amount = Fraction(number.removesuffix("MiB")) * scale
    return max(size - amount, Fraction(0)) if form.startswith("left") else amount
