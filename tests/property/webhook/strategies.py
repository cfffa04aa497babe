"""Pods as people write them, forge them and get them wrong, for the webhook's properties."""

from typing import Any

from hypothesis import strategies as st

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.cards import Card
from gpufence.dialects import Units
from gpufence.need.applied import AppliedProfile
from gpufence.nodes import GpuNode
from gpufence.quantity import GIB, MIB
from webhook.frameworks.table import read_slot
from webhook.policy import DriverLimits, WebhookPolicy, toleration
from webhook.rewrite.containers import SETTABLE, WATCHED

NAMES = ("a", "b", "c")
SIZES = (4, 11, 15, 23, 80)
_values = st.sampled_from(
    [
        *("", "0.05", "0.9", "0", "true", "false", "expandable_segments:True", "1073741824", "50%"),
        *("512", "512MiB", "100M", "junk", "$(OTHER)", "per_process_memory_fraction:0.9", "-1"),
        *("platform", "/app", "LAZY", "a:1,per_process_memory_fraction:0.01,b:[1:2,3:4]", "1e-3"),
    ]
)
_sources = st.sampled_from(
    [
        {"configMapKeyRef": {"name": "c", "key": "k"}},
        {"fieldRef": {"fieldPath": "metadata.name"}},
        *(
            {"fieldRef": {"fieldPath": f"metadata.annotations['env.gpufence.io/{slot}']"}}
            for slot in ("s0", "forged", names.XLA_FRACTION, f"{names.CUPY_LIMIT}.1")
        ),
    ]
)
_entries: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(
        lambda env, value: {"name": env, "value": value}, st.sampled_from(sorted(WATCHED)), _values
    ),
    st.builds(
        lambda env, source: {"name": env, "valueFrom": source},
        st.sampled_from(sorted(WATCHED)),
        _sources,
    ),
    st.builds(
        lambda env, slot: read_slot(env, slot.format(env)),
        st.sampled_from(sorted(SETTABLE)),
        st.sampled_from(["{}", "{}.1", "{}.7"]),
    ),
    st.just({"name": "MINE", "value": "x", "unheardOf": [1]}),
)
_resources: st.SearchStrategy[dict[str, str]] = st.sampled_from(
    [
        {names.GPUSHARE_MEMORY: "2"},
        {names.GPUSHARE_MEMORY: "1"},
        {names.VOLCANO_MEMORY: "3000"},
        {names.VOLCANO_VGPU_MEMORY: "3000"},
        {names.HAMI_MEMORY: "3000", names.NVIDIA_GPU: "1"},
        {names.NVIDIA_GPU: "1"},
        {names.NVIDIA_GPU: "2"},
        {names.NVIDIA_MIG_PREFIX + "1g.5gb": "1"},
        {},
    ]
)
_starts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"image": "vllm/vllm-openai:v1", "args": ["--model", "m"]},
        {"image": "x", "command": ["vllm", "serve", "m", "--gpu-memory-utilization=0.05"]},
        {"image": "x", "command": ["sh", "-c", "python -m sglang.launch_server"]},
        {"image": "tensorflow/serving:2"},
        {"image": "nvcr.io/nvidia/tritonserver:24", "args": ["tritonserver"]},
    ]
)
_words = {
    names.MEMORY: ["2Gi", "700Mi", "300Mi", "nonsense"],
    f"{names.MEMORY_OF_CONTAINER}a": ["1Gi"],
    names.PROCESSES_PER_CARD: ["1", "3"],
    names.HEADROOM: ["auto", "factor", "much"],
    names.PYTHON_HOOK: ["enabled"],
    names.ARGS: ["enabled"],
    names.GROWTH: ["enabled"],
    names.OOM_MESSAGE: ["enabled", "disabled"],
    names.INJECT: ["disabled", "enabled"],
    names.FRAMEWORK: ["vllm", "none"],
    names.BURST: ["card", "3Gi", "250%", "much"],
    names.BURST_SERVERS: ["enabled"],
    names.KAI_FRACTION: ["0.25"],
    names.PLAN: ["{}", '{"v":9}', "junk"],
    names.NODE: ["elsewhere"],
    names.INJECTED: ["yes"],
    f"{names.ENV_PREFIX}s0": ["0.99"],
    f"{names.ENV_PREFIX}{names.XLA_FRACTION}": ["0.99"],
    names.GPUSHARE_CARD_INDEX: ["0"],
    names.VOLCANO_CARD_INDEX: ["1"],
    "team/owner": ["x~y"],
}
pod_annotations: st.SearchStrategy[dict[str, str]] = st.dictionaries(
    st.sampled_from(sorted(_words)), st.none(), max_size=5
).flatmap(lambda keys: st.fixed_dictionaries({key: st.sampled_from(_words[key]) for key in keys}))
namespaces = st.fixed_dictionaries(
    {},
    optional={
        names.MEMORY: st.sampled_from(["3Gi", "oops"]),
        names.MAX_MEMORY: st.just("2Gi"),
        names.IMPLIED_LIMITS: st.just("enabled"),
        names.PYTHON_HOOK: st.just("enabled"),
        names.BURST: st.just("card"),
        names.MAX_BURST: st.sampled_from(["2Gi", "lots"]),
    },
)


@st.composite
def containers(draw: st.DrawFn, name: str, asked: dict[str, str]) -> dict[str, Any]:
    """Draw one container."""
    item: dict[str, Any] = {"name": name, "unheardOf": {"deep": [name]}, **draw(_starts)}
    if asked:
        item["resources"] = {"limits": {**asked, "cpu": "1"}, "requests": asked}
    env = draw(st.none() | st.lists(_entries, max_size=6))
    if env is not None:
        item["env"] = env
    if draw(st.booleans()):
        item["envFrom"] = [{"configMapRef": {"name": "c"}}]
    if draw(st.booleans()):
        item["volumeMounts"] = draw(
            st.sampled_from([[], [{"name": "data", "mountPath": names.HOOK_FOLDER}]])
        )
    return item


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw pods that ask for GPU memory by one system, most of them."""
    asked = draw(_resources)
    spec: dict[str, Any] = {"containers": [], "unheardOf": True}
    for position, name in enumerate(NAMES[: draw(st.integers(1, 3))]):
        mine = asked if draw(st.booleans()) or position == 0 else {}
        kind = draw(st.sampled_from(["containers", "containers", "init", "sidecar"]))
        item = draw(containers(name, mine))
        if kind == "sidecar":
            item["restartPolicy"] = "Always"
        spec.setdefault("containers" if kind == "containers" else "initContainers", []).append(item)
    if draw(st.booleans()):
        spec["schedulerName"] = draw(st.sampled_from(["default-scheduler", "mine"]))
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": names.NVIDIA_GPU, "operator": "Exists"}]
    if draw(st.booleans()):
        spec["nodeSelector"] = {"pool": "x"}
    metadata: dict[str, Any] = {"labels": {"app": "x"}, "unheardOf": 1}
    said = draw(st.none() | pod_annotations)
    if said is not None:
        metadata["annotations"] = said
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@st.composite
def nodes(draw: st.DrawFn) -> GpuNode:
    """Draw nodes of every kind of card, some with cards that nobody knows."""
    known = draw(st.booleans())
    count = draw(st.integers(1, 2))
    cards = [
        Card(f"GPU-{index}", index, "M", draw(st.sampled_from(SIZES)) * GIB - 7 * MIB, (7, 5))
        for index in range(count)
    ]
    return GpuNode(
        name=f"node-{draw(st.integers(0, 99))}",
        labels=draw(st.sampled_from([{}, {"pool": "x"}, {names.DRIVER_LIMITS: "true"}])),
        resources=frozenset(
            {
                *(names.GPUSHARE_MEMORY, names.VOLCANO_MEMORY, names.NVIDIA_GPU),
                *(names.VOLCANO_VGPU_MEMORY, names.NVIDIA_MIG_PREFIX + "1g.5gb"),
            }
        ),
        cards=tuple(cards) if known else (),
        units=Units(clients=draw(st.sampled_from([None, 4]))),
    )


policies = st.builds(
    WebhookPolicy,
    default=st.builds(
        CandidateCard,
        units=st.just(Units()),
        memory_bytes=st.none() | st.just(15 * GIB),
        compute_capability=st.none() | st.just((8, 6)),
    ),
    tolerations=st.sampled_from([(), (toleration("team", "ml", "NoSchedule"),)]),
    reserve_override=st.none() | st.just(300 * MIB),
    hook_source=st.sampled_from(["", "pass\n"]),
    driver_limits=st.sampled_from(DriverLimits),
)
profiles = st.none() | st.builds(
    AppliedProfile,
    st.just("deployment-worker"),
    st.integers(1, 9),
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2**36), min_size=1),
)
"""Profiles of owners, of which some know all containers, and some say what no card can hold."""
