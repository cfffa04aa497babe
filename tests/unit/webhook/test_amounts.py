"""Whose amounts a pod holds to, and how its containers share them."""

import copy
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.limits import Limits, read_limits
from gpufence.mode import Mode
from gpufence.need.applied import AppliedProfile
from gpufence.plan import ProfileUsed, read_plan
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import container, gpushare, node, pod, sidecar
from tests.support.rewriting import POLICY, T4, decide, gpu_node, rewritten, variables
from webhook.rewrite import Refusal, Unchanged
from webhook.rewrite.binding import exact_values

PROFILE = AppliedProfile("deployment-web", 3, {"main": 6 * GIB})
PLAIN = container(**{names.NVIDIA_GPU: "1"})


def limit_by_agent(result: dict[str, Any], **namespace: str) -> int | None:
    """Return the limit that an agent works out, which sees only the pod and its namespace."""
    read = read_pod(result)
    options = read_pod_options(read.annotations, frozenset(item.name for item in read.containers))
    limits = read_limits(read, options, read_namespace_options(namespace), T4)
    assert isinstance(limits, Limits)
    return limits.limit_bytes if limits.enforced else None


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pod_without_an_amount_gets_the_target(mode: Mode) -> None:
    """
    As if its owner had written it: agents come to the same limit, the plan names profile and
    generation, and a second pass changes nothing.
    """
    result, said = rewritten(pod(PLAIN), mode, profile=PROFILE)

    assert "6144Mi" == result["metadata"]["annotations"][names.MEMORY]
    assert 6 * GIB == limit_by_agent(result) == said.plan.limit_bytes
    assert ProfileUsed("deployment-web", 3) == said.plan.profile
    assert said.plan.profile == read_plan(result["metadata"]["annotations"][names.PLAN]).profile
    assert "by profile deployment-web" in said.summary
    assert isinstance(decide(result, mode, profile=PROFILE), Unchanged)


def test_several_containers_get_an_amount_each() -> None:
    """Each asks for a GPU and each is known."""
    profile = PROFILE._replace(amounts={"main": 2 * GIB, "side": GIB, "gone": GIB})
    other = container("side", **{names.NVIDIA_GPU: "1"})
    result, _ = rewritten(pod(PLAIN, other, {"name": "proxy"}), profile=profile)
    amounts = {
        key: text
        for key, text in result["metadata"]["annotations"].items()
        if key.startswith(names.MEMORY)
    }

    assert {f"{names.MEMORY}.main": "2048Mi", f"{names.MEMORY}.side": "1024Mi"} == amounts
    assert 3 * GIB == limit_by_agent(result)


def test_what_is_measured_of_some_containers_alone_is_not_applied() -> None:
    """Whose need nobody knows would get nothing."""
    other = container("side", **{names.NVIDIA_GPU: "1"})
    result, said = rewritten(pod(PLAIN, other), profile=PROFILE)

    assert names.MEMORY not in result["metadata"]["annotations"]
    assert said.plan.profile is None


@pytest.mark.parametrize("mode", list(Mode))
def test_an_amount_that_is_none_is_the_profiles_fault(mode: Mode) -> None:
    """The warning says whose it is, and the pod is made as without one."""
    result, said = rewritten(pod(PLAIN), mode, profile=PROFILE._replace(amounts={"main": 1}))

    assert names.MEMORY not in result["metadata"]["annotations"]
    assert said.plan.profile is None
    (warning,) = [text for text in said.warnings if "profile" in text]
    assert "profile deployment-web is not applied" in warning
    assert "under 1 MiB" in warning


def test_it_tightens_an_amount_and_never_touches_it() -> None:
    """What a scheduler counts stays; the limit is the smaller of both."""
    tight = PROFILE._replace(amounts={"main": 2 * GIB})
    result, _ = rewritten(pod(gpushare(units="3")), profile=tight)
    loose, _ = rewritten(pod(gpushare(units="3")), profile=PROFILE)

    assert (2 * GIB, 3 * GIB) == (limit_by_agent(result), limit_by_agent(loose))
    assert {names.GPUSHARE_MEMORY: "3"} == result["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize("key", [names.MEMORY, f"{names.MEMORY}.main"])
def test_what_a_pod_says_itself_holds(key: str) -> None:
    """Its own amount is neither replaced nor called the profile's."""
    result, said = rewritten(pod(PLAIN, annotations={key: "7Gi"}), profile=PROFILE)

    assert 7 * GIB == limit_by_agent(result)
    assert said.plan.profile is None


def test_a_profile_comes_before_the_namespaces_default() -> None:
    """What is measured of the owner is nearer to it than what holds for all."""
    result, said = rewritten(
        pod(PLAIN), namespace={names.MEMORY: "1Gi", names.GROWTH: "enabled"}, profile=PROFILE
    )

    assert 6 * GIB == limit_by_agent(result)
    assert "enabled" == result["metadata"]["annotations"][names.GROWTH]
    assert ProfileUsed("deployment-web", 3) == said.plan.profile


def test_the_ceiling_of_the_namespace_holds() -> None:
    """Whatever a profile says, for webhook and agent."""
    ceiling = {names.MAX_MEMORY: "4Gi"}
    result, said = rewritten(pod(PLAIN), namespace=ceiling, profile=PROFILE)

    assert 4 * GIB == said.plan.limit_bytes == limit_by_agent(result, **ceiling)


@pytest.mark.parametrize("mode", [Mode.CAP, Mode.EVICT])
def test_a_target_that_is_too_small_here_keeps_nobody_out(mode: Mode) -> None:
    """
    On a card whose contexts need more than the target, the pod is as without a profile, and it is
    said why.
    """
    tiny = PROFILE._replace(amounts={"main": 2 * MIB})
    result, said = rewritten(pod(PLAIN), mode, profile=tiny)

    (remark,) = [text for text in said.warnings if "profile" in text]

    assert names.MEMORY not in result["metadata"]["annotations"]
    assert remark.startswith(
        "profile deployment-web is not applied: main: 2Mi of GPU memory is too"
    )


def test_a_pod_with_a_fault_of_its_own_is_refused_for_that() -> None:
    """A profile excuses nothing."""
    said = decide(pod(PLAIN, annotations={names.HEADROOM: "x"}), Mode.EVICT, profile=PROFILE)

    assert isinstance(said, Refusal)
    assert names.HEADROOM in said.message


def test_where_a_library_caps_the_amount_in_the_resources_counts() -> None:
    """A smaller limit than the library's would be broken by a pod that keeps to what it sees."""
    asked = pod(container(**{names.NVIDIA_GPU: "1", names.HAMI_MEMORY: "8192"}))
    result, said = rewritten(asked, profile=PROFILE)

    assert names.MEMORY not in result["metadata"]["annotations"]
    assert said.plan.profile is None


def test_a_forged_plan_names_no_profile() -> None:
    """What stands on a pod before is dropped, a profile's name too."""
    _, said = rewritten(pod(PLAIN), profile=PROFILE)
    forged = pod(PLAIN, annotations={names.PLAN: '{"v":1,"profile":{"name":"x","generation":1}}'})
    result, _ = rewritten(forged)

    assert said.plan.profile is not None
    assert read_plan(result["metadata"]["annotations"][names.PLAN]).profile is None


def test_binding_keeps_the_name_of_the_profile() -> None:
    """Whoever computes again for the card of a node says whose amounts they are, too."""
    result, _ = rewritten(pod(PLAIN), profile=PROFILE)
    bound = exact_values(copy.deepcopy(result), gpu_node(node()), POLICY)

    assert ProfileUsed("deployment-web", 3) == read_plan(bound[names.PLAN]).profile


GPU = {names.NVIDIA_GPU: "1"}
SERVER: dict[str, Any] = {"image": "ollama/ollama:0.30.1"}


def warnings(*containers: dict[str, Any], **annotations: str) -> tuple[str, ...]:
    said = {
        names.MEMORY: "6Gi",
        **{f"gpufence.io/{key}": text for key, text in annotations.items()},
    }
    _, result = rewritten(pod(*containers, annotations=said))
    return result.warnings


def test_a_split_by_name_needs_no_word() -> None:
    """Who has given one of two containers its part knows what the other has."""
    both = (container("engine", **GPU), container("cache", **GPU))

    assert () == warnings(*both, **{"memory.cache": "1Gi"})


def test_containers_one_after_the_other_split_nothing() -> None:
    """An init container that ends before the others start has all of the amount, as they do."""
    first = container("load", **GPU)
    made = pod(container(**GPU), init=[first], annotations={names.MEMORY: "6Gi"})
    _, said = rewritten(made)

    assert () == said.warnings


@pytest.mark.parametrize("stays", [container, sidecar], ids=["container", "sidecar"])
def test_a_server_that_asks_for_no_card_is_named(stays: Any) -> None:
    """A known server beside one that asks for the GPU reaches cards through its image."""
    helper = stays("helper") | SERVER
    in_front = stays is sidecar
    made = pod(
        *([container(**GPU)] if in_front else [container(**GPU), helper]),
        init=[helper] if in_front else [],
        annotations={names.MEMORY: "6Gi"},
    )
    _, result = rewritten(made)
    (said,) = result.warnings

    assert said.startswith("helper: runs ollama and asks for no GPU")
    assert "set NVIDIA_VISIBLE_DEVICES to void" in said


@pytest.mark.parametrize("devices", ["void", "none", ""])
def test_a_server_kept_from_all_cards_is_passed_over(devices: str) -> None:
    """A helper that says it wants no devices gets none, whatever its image says."""
    helper = container("helper") | SERVER | {"env": variables(NVIDIA_VISIBLE_DEVICES=devices)}

    assert () == warnings(container(**GPU), helper)


def test_a_helper_that_takes_cards_by_its_variable_is_named() -> None:
    """Whatever runs there, the variable gives it cards."""
    helper = container("helper") | {"env": variables(NVIDIA_VISIBLE_DEVICES="all")}
    (said,) = warnings(container(**GPU), helper)

    assert said.startswith('helper: NVIDIA_VISIBLE_DEVICES "all" gives it cards')


def test_a_pod_that_takes_cards_by_its_variable_alone_is_warned() -> None:
    """A pod that asks for no GPU and reaches all stays as it is, and its creator hears of it."""
    taking = container() | {"env": variables(NVIDIA_VISIBLE_DEVICES="all")}
    said = decide(pod(taking))

    assert isinstance(said, Unchanged)
    assert "write gpufence.io/memory; until then gpufence.io/undeclared" in said.warnings[0]


def test_a_pod_without_any_card_hears_nothing() -> None:
    """Most pods have nothing to do with GPUs."""
    said = decide(pod(container() | {"env": variables(NVIDIA_VISIBLE_DEVICES="void")}))

    assert isinstance(said, Unchanged)
    assert () == said.warnings
