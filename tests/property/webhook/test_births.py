"""Pods that are bound to nodes in whatever order nodes and their agents came to be."""

from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.limits import Limits, read_limits
from gpufence.plan import Plan, read_plan
from gpufence.pods import read_pod
from gpufence.quantity import MIB
from tests.support.births import CARDS, Sold, labels_of
from tests.support.builders import card, container, node, pod
from tests.support.rewriting import absent, applied, decide, gpu_node, variables
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite import Rewrite
from webhook.rewrite.binding import exact_values


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
    [{names.IMPLIED_LIMITS: "enabled"}, {names.IMPLIED_LIMITS: "enabled", names.MAX_MEMORY: "2Gi"}]
)


@st.composite
def asks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw pods of every kind of limit, some of which say something themselves."""
    resources, annotations, selector = draw(_asked)
    item: dict[str, Any] = (
        container(**resources) | draw(_servers) | {"env": variables(**draw(_env))}
    )
    said = dict(annotations)
    if draw(st.booleans()):
        said[names.ARGS] = "enabled"
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
    """Whatever nodes there were, and wherever a pod lands, nothing told is above its limit."""
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
        for form, text in _told(plan, annotations):
            assert _amount(form, text, size) <= limits.limit_bytes, (form, text)


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
