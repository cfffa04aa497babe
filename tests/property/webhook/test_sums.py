"""What a server takes by its own documented formula, beside its limit, on every card."""

import argparse
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.quantity import GIB, MIB
from gpufence.share import reserve_bytes
from tests.support.builders import container, pod
from tests.support.rewriting import environment, rewritten
from webhook.policy import WebhookPolicy

CARDS = (11264, 15360, 16384, 23034, 40960, 46068, 81559, 143771)
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
    """
    Return what a server reads on a card, its limit in MiB; nothing where it leaves it no room.
    """
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
    card=st.sampled_from(CARDS),
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
