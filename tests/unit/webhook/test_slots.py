"""The annotations that variables read: their names, and those of pods that are older."""

import copy
import re

import pytest

from gpufence import names
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import (
    POLICY,
    decide,
    environment,
    gpu_node,
    rewritten,
    variables,
    with_old_slots,
)
from webhook.frameworks.table import read_slot, slot_name
from webhook.rewrite import Unchanged
from webhook.rewrite.binding import exact_values
from webhook.rewrite.containers import SETTABLE

T4 = gpu_node(node(card(), name="t4"))


def slots(annotations: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key.startswith(names.ENV_PREFIX)}


@pytest.mark.parametrize("env", sorted(SETTABLE))
def test_kubernetes_takes_the_name_of_every_slot(env: str) -> None:
    """Whatever variable has a slot, its annotation has a name that counts, and none like s0."""
    name = slot_name(env, 9999)

    assert re.fullmatch("[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?", name)
    assert len(name) <= 63
    assert not re.fullmatch("s[0-9]+", env)


def test_a_slot_is_named_by_its_variable() -> None:
    """A second container's slots end in .1, whichever of its variables the first has, too."""
    told = pod(gpushare("a"), gpushare("b") | {"env": variables(CUPY_GPU_MEMORY_LIMIT="1")})
    result, _ = rewritten(told)
    found = slots(result["metadata"]["annotations"])
    first = {key for key in found if "." not in key.removeprefix(names.ENV_PREFIX)}

    assert f"{names.ENV_PREFIX}{names.PYTORCH_CONF}" in first
    assert found.keys() == first | {f"{key}.1" for key in first}
    assert "1" == found[f"{names.ENV_PREFIX}{names.CUPY_LIMIT}.1"]


def test_an_older_pod_needs_no_second_pass() -> None:
    """Slots s0, s1 and on are used again as they are."""
    old = with_old_slots(rewritten(pod(gpushare("a"), gpushare("b")))[0])

    assert f"{names.ENV_PREFIX}s21" in old["metadata"]["annotations"]
    assert isinstance(decide(old), Unchanged)


def test_an_older_pod_is_made_exact() -> None:
    """At binding s0, s1 and on get what slots by name would."""
    wish = {"env": variables(XLA_PYTHON_CLIENT_MEM_FRACTION="0.3")}
    now = rewritten(pod(gpushare("a") | wish, gpushare("b", units="5")))[0]
    old = with_old_slots(now)
    exact, before = exact_values(copy.deepcopy(now), T4, POLICY), exact_values(old, T4, POLICY)

    assert [f"{names.ENV_PREFIX}s{n}" for n in range(len(slots(before)))] == [*slots(before)]
    assert [*slots(exact).values()] == [*slots(before).values()] != []


def test_a_container_keeps_its_number() -> None:
    """What a further pass adds to a container has the number of what it has already."""
    once, _ = rewritten(pod(gpushare("a"), container("b"), gpushare("c")))
    kept = copy.deepcopy(once["spec"]["containers"][2])
    once["spec"]["containers"][2]["env"].pop(0)
    once["spec"]["containers"].insert(0, gpushare("late"))
    twice, _ = rewritten(once)

    late, first, _, last = twice["spec"]["containers"]
    assert kept["env"][0] in last["env"]
    assert once["spec"]["containers"][1] == first
    assert "_CONF.2']" in str(late["env"][0])


@pytest.mark.parametrize(
    "slot",
    [
        *("mine", "s0", "s07", "s99999", "", ".1", names.CUPY_LIMIT, "x" * 300),
        *(names.XLA_FRACTION + end for end in ("", ".", ".1", ".01", ".0", ".-1", ".9999", ".1.1")),
    ],
)
def test_a_forged_slot_is_replaced(slot: str) -> None:
    """A variable that a user has pointed at a slot of ours gets our value, and no other's slot."""
    forged = {"env": [read_slot(names.XLA_FRACTION, slot)]}
    asked = pod(
        gpushare("a") | forged,
        gpushare("b") | forged,
        annotations={f"{names.ENV_PREFIX}{slot}": "0.99"},
    )
    result, said = rewritten(asked)
    given = [row.slot for each in said.plan.containers.values() for row in each.settings]

    assert len(given) == len(set(given))
    assert ["0.140000", "0.140000"] == [
        environment(result, name)[names.XLA_FRACTION] for name in "ab"
    ]
