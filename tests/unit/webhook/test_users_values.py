"""What becomes of the values that users have set themselves, operation by operation."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from gpufence.plan import Done
from tests.support.builders import gpushare, pod
from tests.support.rewriting import (
    NO_CARD,
    POLICY,
    decide,
    environment,
    rewritten,
    variables,
)
from webhook.policy import WebhookPolicy
from webhook.rewrite import Rewrite, Unchanged
from webhook.rewrite.patch import Patch

OURS = "per_process_memory_fraction:0.140000"


def with_env(*entries: dict[str, Any], **values: str) -> dict[str, Any]:
    return pod(gpushare() | {"env": [*entries, *variables(**values)]})


def done(said: Rewrite, env: str) -> Done:
    return next(item.done for item in said.plan.containers["main"].settings if item.env == env)


@pytest.mark.parametrize(
    ("env", "value", "expected"),
    [
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9", "0.140000"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.05", "0.05"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", " .05 ", " .05 "),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "5e-2", "5e-2"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.14", "0.14"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0", "0.140000"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "-1", "0.140000"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "nan", "0.140000"),
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True", f"expandable_segments:True,{OURS}"),
        ("PYTORCH_ALLOC_CONF", "a:[1:2,3:4],b:1,", f"a:[1:2,3:4],b:1,{OURS}"),
        ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.1,b:1", None),
        ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.5,b:1", f"b:1,{OURS}"),
        ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.5", OURS),
        ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:x", OURS),
        ("CUPY_GPU_MEMORY_LIMIT", "1073741824", "1073741824"),
        ("CUPY_GPU_MEMORY_LIMIT", "10%", "10%"),
        ("CUPY_GPU_MEMORY_LIMIT", "50%", "2254857830"),
        ("CUPY_GPU_MEMORY_LIMIT", "0", "2254857830"),
        ("CUPY_GPU_MEMORY_LIMIT", "1Gi", "2254857830"),
        ("FLAGS_gpu_memory_limit_mb", "512", "512"),
        ("FLAGS_gpu_memory_limit_mb", "4096", "2150"),
        ("FLAGS_gpu_memory_limit_mb", "512MB", "2150"),
        ("JULIA_CUDA_HARD_MEMORY_LIMIT", "512MiB", "512MiB"),
        ("JULIA_CUDA_HARD_MEMORY_LIMIT", "100M", "100M"),
        ("JULIA_CUDA_HARD_MEMORY_LIMIT", "5%", "5%"),
        ("JULIA_CUDA_HARD_MEMORY_LIMIT", "8GiB", "2150MiB"),
        ("JULIA_CUDA_HARD_MEMORY_LIMIT", "none", "2150MiB"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "true", "true"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "false", "true"),
        ("CUDA_MODULE_LOADING", "EAGER", "EAGER"),
        ("GPUFENCE_MEMORY_FRACTION", "0.01", "0.01"),
    ],
)
def test_the_smaller_of_both_counts(env: str, value: str, expected: str | None) -> None:
    """A container sees the user's value where that asks for less, and ours everywhere else."""
    result, _ = rewritten(with_env(**{env: value}))

    assert (value if expected is None else expected) == environment(result)[env]


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        ("0.05", "", "0.05"),
        ("0.9", "", "0.140000"),
        ("14%", "", "0.140000"),
        ("0.05", "0.1", "0.05"),
        ("0.1", "0.05", "0.05"),
        ("0.9", "lots", "0.140000"),
        ("lots", "0.05", "0.05"),
    ],
)
def test_the_name_that_every_jax_reads_is_filled(newer: str, older: str, expected: str) -> None:
    """Older JAX reads one name only, so the smaller value stands there and the other is blank."""
    own = {names.XLA_NEW_FRACTION: newer} | ({names.XLA_FRACTION: older} if older else {})
    result, said = rewritten(with_env(**own))
    seen = environment(result)

    assert (expected, "") == (seen[names.XLA_FRACTION], seen[names.XLA_NEW_FRACTION])
    assert any("unknown to older JAX" in text for text in said.warnings)


@pytest.mark.parametrize("env", [names.XLA_FRACTION, names.XLA_NEW_FRACTION])
def test_a_hidden_name_of_jax_keeps_the_other_away(env: str) -> None:
    """Where one of JAX's names cannot be read, neither is touched: both filled would be worse."""
    source = {"configMapKeyRef": {"name": "c", "key": "k"}}
    result, said = rewritten(with_env({"name": env, "valueFrom": source}))
    other = ({names.XLA_FRACTION, names.XLA_NEW_FRACTION} - {env}).pop()

    assert other not in environment(result)
    assert Done.LEFT is done(said, env)


def test_the_last_of_two_counts() -> None:
    """Of a variable that stands twice only the last stays, as it is the last that counts."""
    first = {"name": "CUPY_GPU_MEMORY_LIMIT", "value": "1"}
    result, _ = rewritten(with_env(first, {"name": "X"}, CUPY_GPU_MEMORY_LIMIT="2"))
    env = result["spec"]["containers"][0]["env"]

    assert ["X", "CUPY_GPU_MEMORY_LIMIT"] == [entry["name"] for entry in env[:2]]
    assert "2" == environment(result)["CUPY_GPU_MEMORY_LIMIT"]


def test_a_forged_slot_takes_the_text_before_it_along() -> None:
    """What goes with a forged slot is no sign of a program, in the first pass as in the second."""
    path = f"metadata.annotations['{names.ENV_PREFIX}s0']"
    forged = {"name": names.TGI_FRACTION, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    result, said = rewritten(with_env({"name": names.TGI_FRACTION, "value": ""}, forged))

    assert "" == said.plan.containers["main"].runs
    assert isinstance(decide(result), Unchanged)


def test_without_a_limit_there_are_no_amounts() -> None:
    """Where even the limit is unknown, readers that choke on empty text get no variable at all."""
    asked = pod(gpushare(units="0") | {"env": variables(CUPY_GPU_MEMORY_LIMIT="7")})
    asked["metadata"]["annotations"] = {names.KAI_FRACTION: "0.5"}
    result, _ = rewritten(asked, policy=NO_CARD)
    seen = environment(result)

    assert names.JULIA_LIMIT not in seen
    assert "7" == seen[names.CUPY_LIMIT]


def test_what_no_pass_sets_any_more_goes_back() -> None:
    """When a later pass injects nothing, the user's own values come back and ours go."""
    result, _ = rewritten(with_env(XLA_PYTHON_CLIENT_MEM_FRACTION="0.9"))
    result["metadata"]["annotations"][names.INJECT] = "disabled"
    back, _ = rewritten(result)

    assert {names.XLA_FRACTION: "0.9"} == environment(back)


def test_a_percentage_of_an_unknown_card_does_not_count() -> None:
    """A share of a card that nobody knows cannot be compared, so our amount counts."""
    result, _ = rewritten(with_env(CUPY_GPU_MEMORY_LIMIT="1%"), policy=NO_CARD)

    assert "2254857830" == environment(result)[names.CUPY_LIMIT]


def test_a_reserve_of_the_operators_counts_for_all() -> None:
    """The operator's context reserve replaces the table's, TensorFlow's supplement included."""
    policy = replace(NO_CARD, reserve_override=2 * 2**30)
    result, _ = rewritten(with_env(), policy=policy)

    assert str(2**30) == environment(result)[names.CUPY_LIMIT]


@pytest.mark.parametrize(
    ("env", "value", "word"),
    [
        ("PYTORCH_CUDA_ALLOC_CONF", "", "hides PYTORCH_ALLOC_CONF"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "Platform", "platform ignores"),
        ("TF_FORCE_UNIFIED_MEMORY", "1", "lifts every cap"),
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async", "keeps to no cap"),
        ("GGML_CUDA_ENABLE_UNIFIED_MEMORY", "1", "cannot be attributed"),
        ("NVIDIA_VISIBLE_DEVICES", "all", "overrides the cards"),
    ],
)
def test_what_defeats_a_cap_is_warned_about(env: str, value: str, word: str) -> None:
    """A variable that takes the effect from a cap stays and is named."""
    result, said = rewritten(with_env(**{env: value}))

    assert value == environment(result)[env]
    assert any(word in text for text in said.warnings)


@pytest.mark.parametrize(
    "options",
    [
        "backend:cudaMallocAsync",
        "expandable_segments:True, backend : cudaMallocAsync",
        "backend:cudaMallocAsync,per_process_memory_fraction:0.05",
    ],
)
def test_pytorchs_other_backend_is_warned_about(options: str) -> None:
    """PyTorch's cudaMallocAsync keeps to no fraction in its options, so only the hook caps it."""
    _, alone = rewritten(with_env(PYTORCH_ALLOC_CONF=options))
    hooked = with_env(PYTORCH_ALLOC_CONF=options)
    hooked["metadata"]["annotations"] = {"gpufence.io/python-hook": "enabled"}
    _, with_hook = rewritten(hooked)

    assert any("cudaMallocAsync, which keeps to no fraction" in text for text in alone.warnings)
    assert [] == [text for text in with_hook.warnings if "cudaMallocAsync, which" in text]


@pytest.mark.parametrize(
    ("env", "value"),
    [
        ("PYTORCH_ALLOC_CONF", "backend:native"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "default"),
        ("TF_FORCE_UNIFIED_MEMORY", "0"),
        ("TF_GPU_ALLOCATOR", "x"),
        ("GGML_CUDA_ENABLE_UNIFIED_MEMORY", ""),
        ("NVIDIA_VISIBLE_DEVICES", "none"),
    ],
)
def test_harmless_values_are_not(env: str, value: str) -> None:
    """The same variables with harmless values are not worth a word."""
    _, said = rewritten(with_env(**{env: value}))

    assert () == said.warnings


def document() -> dict[str, Any]:
    return {"metadata": {"annotations": {"a/b~c": "1"}}, "spec": {"list": [{"k": 1}, {"k": 2}]}}


@pytest.mark.parametrize("missing", [{}, {"annotations": None}])
def test_parents_are_made(missing: dict[str, Any]) -> None:
    """Where the object is missing, or null, one operation makes it with all its members."""
    patch = Patch({"metadata": missing})
    patch.update(("metadata", "annotations"), {"a": "1", "b": "2"})
    patch.update(("metadata", "annotations"), {"c": "3"})

    assert ["/metadata/annotations", "/metadata/annotations/c"] == [
        item["path"] for item in patch.operations
    ]
    assert {"a": "1", "b": "2"} == patch.operations[0]["value"]


def test_what_cannot_apply_cannot_be_made() -> None:
    """An operation on what is not there raises here, before anybody else sees it."""
    patch = Patch(document())
    with pytest.raises(KeyError):
        patch.remove(("metadata", "annotations"), "missing")
    with pytest.raises(TypeError):
        patch.update(("nowhere", "at all"), {"a": "1"})

    assert [] == patch.operations


@pytest.mark.parametrize("growth", ["disabled", "enabled"])
@pytest.mark.parametrize("policy", [POLICY, NO_CARD], ids=["a card", "no card"])
@pytest.mark.parametrize("mode", list(Mode))
def test_what_stands_elsewhere_changes_nothing_of_what_is_told(
    mode: Mode, policy: WebhookPolicy, growth: str
) -> None:
    """A container with an envFrom gets just what one without settings of its own gets."""
    elsewhere = {"envFrom": [{"configMapRef": {"name": "more"}}]}
    asked = [pod(gpushare() | each, annotations={names.GROWTH: growth}) for each in ({}, elsewhere)]
    (silent, one), (other, another) = [rewritten(each, mode, policy=policy) for each in asked]

    assert environment(silent) == environment(other)
    assert one.plan == another.plan
