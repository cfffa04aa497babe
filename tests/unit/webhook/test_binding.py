"""The values at binding, and the annotations that variables read."""

import copy
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from gpufence.nodes import GpuNode
from gpufence.plan import Done, read_plan
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import (
    NO_CARD,
    POLICY,
    absent,
    environment,
    gpu_node,
    rewritten,
    variables,
    with_old_slots,
)
from webhook.fleet import Fleet
from webhook.frameworks.table import read_slot, slot_name
from webhook.policy import WebhookPolicy
from webhook.rewrite.binding import exact_values
from webhook.rewrite.containers import SETTABLE

T4 = gpu_node(node(card(), name="t4"))
H100 = gpu_node(
    node(
        card(memory_bytes=80 * 2**30, model="H100", compute_capability=(9, 0)),
        name="h100",
    )
)
BOTH = Fleet([T4, H100])


def created(asked: dict[str, Any], mode: Mode = Mode.CAP, **words: str) -> dict[str, Any]:
    return rewritten(asked, mode, words, BOTH)[0]


def value(exact: dict[str, str], created_pod: dict[str, Any], env: str) -> str:
    plan = read_plan(created_pod["metadata"]["annotations"][names.PLAN])
    settings = plan.containers["main"].settings
    slot = next(item.slot for item in settings if item.env == env)
    return exact[names.ENV_PREFIX + slot]


@pytest.mark.parametrize(("where", "expected"), [(T4, "0.466666"), (H100, "0.087500")])
def test_values_are_exact_for_the_node(where: Any, expected: str) -> None:
    """At binding every value is that of the node's own card."""
    bound = created(pod(gpushare(units="10")))
    exact = exact_values(bound, where, POLICY)

    assert expected == value(exact, bound, names.XLA_FRACTION)
    assert where.name == exact[names.NODE]
    assert where.cards[0].model in exact[names.CARD]


def test_a_wish_counts_again() -> None:
    """A user's fraction above the careful default, but within the node's share, comes back."""
    bound = created(
        pod(gpushare(units="10") | {"env": variables(XLA_PYTHON_CLIENT_MEM_FRACTION="0.3")})
    )
    careful = value(bound["metadata"]["annotations"], bound, names.XLA_FRACTION)
    exact = exact_values(bound, T4, POLICY)

    assert ("0.087500", "0.3") == (careful, value(exact, bound, names.XLA_FRACTION))
    assert "" == exact[names.WARNINGS]


def test_the_scheduler_may_name_the_card() -> None:
    """Where a node has different cards, the assigned one counts, else the careful minimum."""
    cards = (card(), card(1, memory_bytes=80 * 2**30))
    mixed = gpu_node(node(*cards, allocatable={names.GPUSHARE_MEMORY: "30"}))
    bound = rewritten(pod(gpushare(units="10")), fleet=Fleet([mixed]))[0]
    careful = exact_values(bound, mixed, POLICY)
    bound["metadata"]["annotations"][names.GPUSHARE_CARD_INDEX] = "0"
    exact = exact_values(bound, mixed, POLICY)

    assert "0.087500" == value(careful, bound, names.XLA_FRACTION)
    assert "0.466666" == value(exact, bound, names.XLA_FRACTION)


def test_the_namespaces_ceiling_of_that_time_counts() -> None:
    """The ceiling that held at creation is read from the plan."""
    asked = pod(container(**{names.NVIDIA_GPU: "1"}), annotations={names.MEMORY: "12Gi"})
    bound = rewritten(asked, namespace={names.MAX_MEMORY: "3Gi"})[0]
    exact = exact_values(bound, T4, POLICY)

    assert "0.140000" == value(exact, bound, names.XLA_FRACTION)


def test_a_limit_too_small_for_that_card_is_warned_about() -> None:
    """Where the card leaves a framework no room, the value is the least and the pod says so."""
    bound = created(pod(gpushare(), annotations={names.MEMORY: "700Mi"}))
    exact = exact_values(bound, H100, POLICY)

    assert str(128 * 2**20) == value(exact, bound, names.CUPY_LIMIT)
    assert "ask for at least 896Mi" in exact[names.WARNINGS]


def test_a_server_bound_where_it_would_overstep_is_named() -> None:
    """A server let through on the careful share is warned of where the node's is smaller."""
    flag = ["--gpu-memory-utilization=0.15"]
    asked = pod(gpushare() | {"image": "vllm/vllm-openai", "args": flag})
    bound = rewritten(asked)[0]
    exact = exact_values(bound, H100, POLICY)

    assert '--gpu-memory-utilization "0.15"' in exact[names.WARNINGS]


def test_a_cap_of_an_earlier_release_is_no_smaller_than_the_limit() -> None:
    """A planner that was given PyTorch's cap before an upgrade gets the whole limit at binding."""
    asked = pod(gpushare() | {"image": "x", "args": ["train"]})
    bound = created(asked)
    bound["spec"]["containers"][0]["args"] = ["vllm", "serve", "m", "--gpu-memory-utilization=0.01"]

    assert "per_process_memory_fraction:0.037500" == value(
        exact_values(bound, H100, POLICY), bound, names.PYTORCH_CONF
    )


def seen(asked: dict[str, Any], **annotations: str) -> dict[str, Any]:
    return asked | {"metadata": {**asked["metadata"], "annotations": annotations}}


JUNK = pod(container(**{names.NVIDIA_GPU: "1"}), annotations={names.MEMORY: "junk"})
NO_PLAN = rewritten(pod(gpushare()), policy=NO_CARD)[0]
PLAN = created(pod(gpushare()))["metadata"]["annotations"][names.PLAN]


@pytest.mark.parametrize(
    ("bound", "where", "policy"),
    [
        pytest.param(created(pod(gpushare()), Mode.OBSERVE), T4, POLICY, id="observe"),
        pytest.param(created(JUNK), T4, POLICY, id="no limit"),
        pytest.param(seen(pod(gpushare()), **{names.PLAN: PLAN}), T4, POLICY, id="unseen"),
        pytest.param(
            seen(pod(gpushare()), **{names.INJECTED: "yes", names.PLAN: '{"v":2}'}),
            *(T4, POLICY),
            id="newer",
        ),
        pytest.param(
            created(pod(gpushare())),
            gpu_node(node(card(), allocatable={names.GPUSHARE_MEMORY: "700"})),
            POLICY,
            id="a doubtful unit",
        ),
        pytest.param(NO_PLAN, gpu_node(node(name="dumb")), NO_CARD, id="no card known, ever"),
    ],
)
def test_what_cannot_be_made_exact_is_left(
    bound: dict[str, Any], where: GpuNode, policy: WebhookPolicy
) -> None:
    """The careful values stay, and where there are none a binding brings none."""
    assert {} == exact_values(bound, where, policy)


@pytest.mark.parametrize("policy", [NO_CARD, POLICY], ids=["nothing known", "a default card"])
def test_an_unknown_card_is_told_as_the_largest(policy: WebhookPolicy) -> None:
    """On a node that does not state its cards no other card's fraction stays, nor is it exact."""
    dumb = gpu_node(node(name="dumb"))
    bound = rewritten(pod(gpushare()), fleet=Fleet([T4]))[0]
    careful = exact_values(bound, dumb, policy)

    assert "0.140000" == value(bound["metadata"]["annotations"], bound, names.XLA_FRACTION)
    assert "0.007291" == value(careful, bound, names.XLA_FRACTION)
    assert names.NODE not in careful
    assert "unknown" == careful[names.CARD]
    assert "node dumb does not state its cards" in careful[names.WARNINGS]
    assert "does not state its cards" in careful[names.SUMMARY]


def test_amounts_stay_on_an_unknown_card() -> None:
    """What is told in bytes is right on every card."""
    bound = rewritten(pod(gpushare()), fleet=Fleet([T4]))[0]
    before = value(bound["metadata"]["annotations"], bound, names.CUPY_LIMIT)
    careful = exact_values(bound, gpu_node(node(name="dumb")), NO_CARD)

    assert before == value(careful, bound, names.CUPY_LIMIT)


def test_the_operator_may_know_the_largest_card() -> None:
    """Where an operator says how large such cards are at most, fractions are of that."""
    bound = rewritten(pod(gpushare()), fleet=Fleet([T4]))[0]
    policy = replace(NO_CARD, largest_bytes=80 * 2**30)
    careful = exact_values(bound, gpu_node(node(name="dumb")), policy)

    assert "0.026250" == value(careful, bound, names.XLA_FRACTION)


def test_a_share_of_an_unknown_card_is_that_share_in_fractions_and_small_in_bytes() -> None:
    """A limit that the card itself makes is told as on the smallest and the largest there is."""
    asked = pod(container(**{names.NVIDIA_GPU: "1"}), nodeSelector={names.GKE_CLIENTS: "4"})
    bound = rewritten(asked, namespace={names.IMPLIED_LIMITS: "enabled"}, fleet=Fleet([H100]))[0]
    careful = exact_values(
        bound, gpu_node(node(name="dumb", allocatable={names.NVIDIA_GPU: "4"})), NO_CARD
    )

    assert 0 < Fraction(value(careful, bound, names.XLA_FRACTION)) <= Fraction(1, 4)
    assert int(value(careful, bound, names.CUPY_LIMIT)) <= 2**30


SERVER = {"image": "vllm/vllm-openai:v0.11.0", "args": ["--model", "m"]}
LATE = gpu_node(node(card(), name="late"))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (container(**{names.NVIDIA_GPU: "1"}), {}),
        (container(**{names.NVIDIA_GPU: "1"}), {names.HEADROOM: "auto"}),
        (container() | SERVER, {names.KAI_FRACTION: "0.5", names.ARGS: "enabled"}),
        (container(**{names.NVIDIA_GPU: "1"}) | SERVER, {names.ARGS: "enabled"}),
    ],
    ids=["amounts", "amounts, tuned", "a share and a flag", "a whole card and a flag"],
)
def test_what_a_plan_calls_told_at_binding_is_in_the_pod(
    item: dict[str, Any], said: dict[str, str]
) -> None:
    """
    No variable and no flag can be added to a pod that exists, so none counts as told that was left
    out while no card was known.
    """
    asked = pod(item, annotations=said)
    words = {names.IMPLIED_LIMITS: "enabled"}
    bound = rewritten(asked, Mode.CAP, words, Fleet(()), NO_CARD)[0]
    bound["metadata"]["annotations"] |= exact_values(bound, LATE, NO_CARD)

    assert [] == absent(bound)
    assert "late" == bound["metadata"]["annotations"][names.NODE]


def test_a_flag_that_was_left_out_is_named_at_binding() -> None:
    """A server whose flag could not be set is not called told, and its owner reads so."""
    asked = pod(
        container() | SERVER, annotations={names.KAI_FRACTION: "0.5", names.ARGS: "enabled"}
    )
    bound = rewritten(asked, fleet=Fleet(()), policy=NO_CARD)[0]
    bound["metadata"]["annotations"] |= exact_values(bound, LATE, NO_CARD)
    said = bound["metadata"]["annotations"]

    assert SERVER["args"] == bound["spec"]["containers"][0]["args"]
    assert read_plan(said[names.PLAN]).containers["main"].cap_bytes is None
    assert "--gpu-memory-utilization" in said[names.WARNINGS]


def test_a_pod_that_names_its_node_is_told_like_any_other() -> None:
    """One that is created with its node is being created: its flag and its variables are set."""
    said = {names.ARGS: "enabled", names.MEMORY: "4Gi"}
    asked = pod(container(**{names.NVIDIA_GPU: "1"}) | SERVER, annotations=said, nodeName="late")
    made, answer = rewritten(asked, fleet=Fleet([LATE]))
    word = pod(container(**{names.NVIDIA_GPU: "1"}), annotations=said, nodeName="late")

    assert "--gpu-memory-utilization" in made["spec"]["containers"][0]["args"][-1]
    assert [] == absent(made)
    assert any(names.ARGS in each for each in rewritten(word, fleet=Fleet([LATE]))[1].warnings)
    assert answer.plan.containers["main"].cap_bytes is not None


def test_what_stands_as_the_user_wrote_it_is_noted_as_left() -> None:
    """A variable that points nowhere cannot be changed at binding, and the plan says so."""
    held = created(pod(gpushare()))
    entries = held["spec"]["containers"][0]["env"]
    at = next(at for at, each in enumerate(entries) if each["name"] == names.CUPY_LIMIT)
    entries[at] = {"name": names.CUPY_LIMIT, "value": "99%"}
    plan = read_plan(exact_values(held, T4, POLICY)[names.PLAN])
    found = [each for each in plan.containers["main"].settings if each.env == names.CUPY_LIMIT]

    assert [("99%", Done.LEFT, "")] == [(each.user, each.done, each.slot) for each in found]


def slots(annotations: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key.startswith(names.ENV_PREFIX)}


@pytest.mark.parametrize("env", sorted(SETTABLE))
def test_kubernetes_takes_the_name_of_every_slot(env: str) -> None:
    """Whatever variable has a slot, its annotation has a name that counts, and none like s0."""
    name = slot_name(env, 9999)

    assert re.fullmatch("[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?", name)
    assert len(name) <= 63
    assert not re.fullmatch("s[0-9]+", env)


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
