"""What was measured of contexts by card model: the caps on that card, and on no other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.plan import read_plan
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import POLICY, gpu_node, rewritten
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite.binding import exact_values

T4 = gpu_node(node(card(), name="t4"))
MEASURED = (("Tesla T4", 2**31),)
FACTOR = 3 * 2**30 * 7 // 10


def told(exact: Mapping[str, str], created_pod: dict[str, Any]) -> int:
    """Return the bytes that CuPy is allowed."""
    plan = read_plan(created_pod["metadata"]["annotations"][names.PLAN])
    settings = plan.containers["main"].settings
    slot = next(item.slot for item in settings if item.env == names.CUPY_LIMIT)
    return int(exact[names.ENV_PREFIX + slot])


@pytest.mark.parametrize(
    ("policy", "tight", "roomy"),
    [
        (replace(POLICY, measured=MEASURED), 2**30, FACTOR),
        (replace(POLICY, measured=MEASURED, reserve_override=5 * 2**29), 2**30, 2**29),
        (POLICY, FACTOR, FACTOR),
    ],
)
def test_a_measured_context_counts_on_its_own_card_alone(
    policy: WebhookPolicy, tight: int, roomy: int
) -> None:
    """Of cards alike but for the model the one that was measured has its own cap, the other not."""
    other = gpu_node(node(card(model="NVIDIA P4"), name="other"))
    asked = pod(gpushare())
    bound = rewritten(asked, fleet=Fleet([T4, other]), policy=policy)[0]
    caps = {where.name: told(exact_values(bound, where, policy), bound) for where in (T4, other)}

    assert {"t4": tight, "other": roomy} == caps
    assert min(tight, roomy) == told(bound["metadata"]["annotations"], bound)


@pytest.mark.parametrize("model", ["Tesla-T4", "tesla t4"])
def test_a_measured_context_counts_where_labels_name_the_card(model: str) -> None:
    """Feature discovery writes the blanks of a model as dashes."""
    labels = {names.GFD_PRODUCT: model, names.GFD_MEMORY: "15360", names.GFD_COUNT: "1"}
    policy = replace(POLICY, measured=MEASURED)
    bound = rewritten(pod(gpushare()), fleet=Fleet([gpu_node(node(labels=labels))]), policy=policy)[
        0
    ]

    assert 2**30 == told(bound["metadata"]["annotations"], bound)


def test_a_measured_context_counts_on_nodes_that_are_not_there_yet() -> None:
    """The pod's own selector names their card."""
    asked = pod(gpushare(), nodeSelector={names.GFD_PRODUCT: "Tesla-T4"})
    bound = rewritten(asked, policy=replace(POLICY, measured=MEASURED))[0]

    assert 2**30 == told(bound["metadata"]["annotations"], bound)


def test_a_measured_context_of_an_instance_is_not_that_of_the_whole_card() -> None:
    """A MIG instance is named with its profile."""
    offered = {f"{names.NVIDIA_MIG_PREFIX}1g.15gb": "1"}
    instance = card(1, parent="GPU-0", profile="1g.15gb")
    cut = gpu_node(node(card(), instance, allocatable=offered))
    asked = pod(container("main", **offered))
    asked["metadata"]["annotations"] = {names.MEMORY: "3Gi"}
    whole, own = (
        rewritten(asked, fleet=Fleet([cut]), policy=replace(POLICY, measured=each))[0]
        for each in (MEASURED, (("Tesla T4 MIG 1g.15gb", 2**31),))
    )

    assert FACTOR == told(whole["metadata"]["annotations"], whole)
    assert 2**30 == told(own["metadata"]["annotations"], own)
