"""The CEL text that keeps pods without GPU away from the webhook."""

import re

from gpufence import names
from gpufence.conditions import frozen, no_mirror, uses_gpu
from gpufence.dialects import ANNOTATION_KEYS, GPU_RESOURCES


def test_every_known_resource_and_key_lets_a_pod_through() -> None:
    """No dialect is known to the code and unknown to the API server."""
    quoted = set(re.findall(r"'([^']*)'", uses_gpu()))

    assert {
        *GPU_RESOURCES,
        *ANNOTATION_KEYS,
        names.NVIDIA_MIG_PREFIX,
        names.PREFIX,
        names.ENV_PREFIX,
        names.KAI_OF_CONTAINER,
        *names.KAI_DRIVER,
    } == quoted


def test_absent_fields_are_no_error() -> None:
    """
    Every field that a pod may lack is read as optional, since an error would let all pods through.
    """
    optional = ("initContainers", "resources", "limits", "annotations")

    assert [True] * 4 == [f".?{field}" in uses_gpu() for field in optional]


def test_init_containers_count_too() -> None:
    """A pod whose init container alone asks for a GPU is let through."""
    every = "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "

    assert uses_gpu().startswith(every)


def test_mirrors_of_static_pods_are_kept_away() -> None:
    """The kubelet runs static pods as it likes, so changing their mirrors would only mislead."""
    assert (
        "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
        == no_mirror()
    )


def test_annotations_that_decide_are_frozen() -> None:
    """
    Ours cannot change once a pod exists, and a dialect's cannot where its namespace is fenced.
    """
    quoted = set(re.findall(r"'([^']*)'", frozen()))

    assert {names.PREFIX, names.ENV_PREFIX, *ANNOTATION_KEYS} == quoted
