"""Pods, amounts and noise for the property tests."""

from typing import Any

from hypothesis import strategies as st

from gpufence import names
from gpufence.dialects import GPU_RESOURCES
from gpufence.quantity import GIB, MIB

RESOURCES = (*GPU_RESOURCES, f"{names.NVIDIA_MIG_PREFIX}1g.5gb")
CONTAINERS = ("a", "b", "c", "d")
noise = st.text(max_size=12)
quantities = st.one_of(
    st.integers(0, 40_000).map(str),
    st.sampled_from(["3Gi", "10G", "500m", "-1", "1e3", "0.9Gi", "", "Gi", "9" * 30, "1E"]),
    noise,
)
amounts = st.integers(MIB, 200 * GIB)
cards = st.integers(GIB, 300 * GIB)
_pod_keys = st.sampled_from(  # keys a pod really has, so that noise gets past the first look
    [
        *("metadata", "spec", "annotations", "containers", "initContainers", "resources", "limits"),
        *("name", "nodeSelector", "affinity", "restartPolicy", "resourceClaims"),
        *RESOURCES,
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | noise,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(noise | _pod_keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def pods(draw: st.DrawFn, values: st.SearchStrategy[str] = quantities) -> dict[str, Any]:
    """Draw pods of a right shape that ask for GPU memory in every mixture of ways."""
    present = draw(st.lists(st.sampled_from(CONTAINERS), min_size=1, max_size=4, unique=True))
    kinds = [draw(st.sampled_from(["regular", "init", "sidecar"])) for _ in present]
    spec: dict[str, Any] = {"containers": [], "initContainers": []}
    resource = draw(st.sampled_from(RESOURCES))
    for name, kind in zip(present, kinds, strict=True):
        asked = {resource: draw(values)} if draw(st.booleans()) else {}
        container: dict[str, Any] = {"name": name, "resources": {"limits": asked}}
        if kind == "sidecar":
            container["restartPolicy"] = "Always"
        spec["containers" if kind == "regular" else "initContainers"].append(container)
    keys = [names.MEMORY, names.KAI_MEMORY, names.KAI_FRACTION, names.PROCESSES_PER_CARD]
    keys += [f"{names.MEMORY_OF_CONTAINER}{name}" for name in present]
    annotations = draw(st.dictionaries(st.sampled_from(keys), values, max_size=3))
    return {"metadata": {"annotations": annotations}, "spec": spec}


def readable_pods() -> st.SearchStrategy[dict[str, Any]]:
    """Pods whose amounts are all in place, so that most of them have limits."""
    mebibytes = st.integers(1, 4000)
    return pods(
        mebibytes.map(lambda value: f"{value}Mi") | mebibytes.map(str) | st.integers(1, 10).map(str)
    )
