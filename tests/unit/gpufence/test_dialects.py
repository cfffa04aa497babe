"""The dialects' specs, and the conditions that follow from them."""

import re
from collections import Counter
from pathlib import Path

import pytest

import gpufence.dialects
from gpufence import names
from gpufence.dialects import (
    ADVERTISED_AS,
    ANNOTATION_KEYS,
    BOOKKEEPING_KEYS,
    CARD_KEYS,
    GPU_RESOURCES,
    NODE_RESOURCES,
    SPECS,
    DialectSpec,
    Units,
    concerns_gpufence,
)
from gpufence.pods import read_pod
from tests.support.builders import pod
from tools.conditions import frozen, no_mirror, uses_gpu


def test_every_module_is_a_dialect_that_is_listed() -> None:
    """A dialect that names.py does not list would be read by nobody."""
    folder = Path(gpufence.dialects.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "spec"}

    assert modules == set(names.DIALECTS)
    assert [module.replace("_", "-") for module in names.DIALECTS] == [each.name for each in SPECS]


def test_nothing_is_read_by_two_dialects() -> None:
    """
    A resource or annotation means one thing; only a dialect that says so refines another's. A
    setting's name has no dash.
    """
    counted = Counter((*GPU_RESOURCES, *ANNOTATION_KEYS))
    refined = {resource for spec in SPECS for resource in spec.refines}

    assert {1} == set(counted.values())
    assert refined | ADVERTISED_AS.keys() | set(ADVERTISED_AS.values()) <= set(GPU_RESOURCES)
    assert "VOLCANO_VGPU" in {spec.setting for spec in SPECS}


@pytest.mark.parametrize(
    ("key", "concerns"),
    [
        ("gpufence.io/memory", True),
        ("env.gpufence.io/s0", True),
        ("gpu-fraction", True),
        ("prometheus.io/scrape", False),
    ],
)
def test_an_annotation_concerns_gpufence_by_its_key(key: str, *, concerns: bool) -> None:
    """These are the keys for which the API server calls the webhook."""
    assert concerns == concerns_gpufence(["a", key])


def test_the_dialects_own_bookkeeping_is_known() -> None:
    """What schedulers write on pods is forged where a pod brings it along."""
    assert BOOKKEEPING_KEYS == {*names.GPUSHARE_BOOKKEEPING, *names.VOLCANO_BOOKKEEPING}
    assert set(CARD_KEYS) <= BOOKKEEPING_KEYS
    assert NODE_RESOURCES == {*GPU_RESOURCES, names.GPUSHARE_COUNT}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_pod_that_asks_for_nothing_declares_nothing(spec: DialectSpec) -> None:
    """A dialect without resources reads any pod, and finds nothing in this one."""
    if not (spec.resources or spec.prefix):
        assert None is spec.read(read_pod(pod()), [], Units())


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


def test_a_condition_reads_what_a_pod_may_lack() -> None:
    """
    Init containers ask, too; an absent field is no error, which would let all pods through; mirrors
    of static pods, which the kubelet runs as it likes, are kept away.
    """
    optional = ("initContainers", "resources", "limits", "annotations")
    every = "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
    annotations = "object.metadata.?annotations.orValue({})"

    assert [True] * 4 == [f".?{field}" in uses_gpu() for field in optional]
    assert uses_gpu().startswith(every)
    assert f"!('kubernetes.io/config.mirror' in {annotations})" == no_mirror()


def test_annotations_that_decide_are_frozen() -> None:
    """
    Ours cannot change once a pod exists, and a dialect's cannot where its namespace is fenced.
    """
    quoted = set(re.findall(r"'([^']*)'", frozen()))

    assert {names.PREFIX, names.ENV_PREFIX, *ANNOTATION_KEYS} == quoted
