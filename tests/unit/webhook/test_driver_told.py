"""What is written into containers that the driver holds, and what is given back."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from gpufence.plan import Done, driver_bytes, read_plan, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import applied, decide, environment, gpu_node, rewritten, variables
from webhook.fleet import Fleet
from webhook.policy import DriverLimits, WebhookPolicy
from webhook.rewrite import Rewrite, Unchanged
from webhook.rewrite.binding import exact_values

ON = WebhookPolicy(driver_limits=DriverLimits.ON)
LABELLED = replace(ON, driver_limits=DriverLimits.LABELLED)
AUTO = replace(ON, driver_limits=DriverLimits.AUTO)


def sized(*sizes: int, name: str = "a", driver: str = "615.71.09", **labels: str) -> dict[str, Any]:
    """Build a node whose agent states cards of these sizes in MiB."""
    cards = [card(at, memory_bytes=size * MIB) for at, size in enumerate(sizes)]
    offered = {names.NVIDIA_GPU: "4", names.GPUSHARE_MEMORY: str(sum(sizes) // 1024)}
    return node(*cards, name=name, driver=driver, labels=labels, allocatable=offered)


SILENT = node(name="l", allocatable={names.NVIDIA_GPU: "4", names.GPUSHARE_MEMORY: "15"})
YES = {names.DRIVER_LIMITS: "true"}
T4 = sized(15360)


def required(result: dict[str, Any]) -> Any:
    return result["spec"].get("affinity")


def fleet_of(*nodes: dict[str, Any]) -> Fleet:
    return Fleet([gpu_node(each) for each in nodes])


MIXED = fleet_of(sized(15360, **YES), sized(40960, name="b"))
SOURCE = {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}
BOTH = {names.DRIVER_REQUEST: "0", names.DRIVER_LIMIT: "3072"}


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (variables(NVIDIA_GPU_MEMORY_LIMIT="9999"), "9999"),
        (variables(NVIDIA_GPU_MEMORY_LIMIT="3072", NVIDIA_GPU_MEMORY_REQUEST="0"), "3072"),
        (variables(NVIDIA_GPU_MEMORY_LIMIT=""), ""),
        (variables(NVIDIA_GPU_MEMORY_LIMIT="$(A)"), "$(A)"),
        ([{"name": names.DRIVER_LIMIT}], ""),
        ([{"name": names.DRIVER_LIMIT, "valueFrom": SOURCE}], SOURCE),
        (
            [
                *variables(NVIDIA_GPU_MEMORY_LIMIT="1", A="2"),
                *variables(NVIDIA_GPU_MEMORY_LIMIT="5000"),
                *variables(NVIDIA_GPU_MEMORY_REQUEST="7", B="3"),
                *variables(NVIDIA_GPU_MEMORY_REQUEST="8"),
            ],
            "5000",
        ),
    ],
)
def test_what_the_container_says_itself_does_not_count(said: Any, last: Any) -> None:
    """Its variables become ours, each once; they return when something else comes to hold it."""
    annotations = {names.KAI_MEMORY: "3072"}
    asked = pod(container() | {"env": said, "envFrom": [{}]}, annotations=annotations)
    result, outcome = rewritten(asked, fleet=fleet_of(T4), policy=ON)
    env = [each for each in result["spec"]["containers"][0]["env"] if each["name"] in BOTH]

    assert BOTH == {each["name"]: each["value"] for each in env}
    assert 2 == len(env)
    assert isinstance(decide(result, fleet=fleet_of(T4), policy=ON), Unchanged)
    lowered = any(names.DRIVER_LIMIT in text for text in outcome.warnings)
    assert lowered is (last != "3072")

    result["metadata"]["annotations"][names.KAI_ISOLATE] = "true"
    isolated, _ = rewritten(result, fleet=fleet_of(T4), policy=ON)
    back = [
        each
        for each in isolated["spec"]["containers"][0]["env"]
        if each["name"] in said_names(said)
    ]
    given = next(each for each in back if each["name"] == names.DRIVER_LIMIT)
    assert last == given.get("valueFrom", given.get("value"))
    assert len(back) == len(said_names(said))


def test_a_measured_context_counts_where_the_driver_holds() -> None:
    """The driver shows the limit as the card: what was measured of the real one is left of it."""
    asked = pod(container(), annotations={names.KAI_MEMORY: "3072"})
    measured = replace(ON, measured=(("Tesla T4", 2 * GIB),))
    said = [
        rewritten(asked, fleet=fleet_of(T4), policy=policy)[1].plan.containers["main"]
        for policy in (ON, measured)
    ]
    caps = [{each.allowance_bytes for each in item.settings} for item in said]

    assert GIB in caps[1] - caps[0]


def said_names(said: list[dict[str, Any]]) -> set[str]:
    return {each["name"] for each in said}


ODD = '{"valueFrom":{"a":{"b":"c"},"d":1}}'


@pytest.mark.parametrize(
    "text", ['{"valueFrom":', '{"valueFrom":[]}', '{"valueFrom":{"a":{"b":[]}}}', ODD, "[", "1"]
)
def test_a_forged_plan_gives_back_no_more_than_a_text(text: str) -> None:
    """What is no variable of Kubernetes becomes one with just that value."""
    asked = pod(container(), annotations={names.KAI_MEMORY: "3072"})
    result, said = rewritten(asked, fleet=fleet_of(T4), policy=ON)
    settings = [each._replace(user=text) for each in said.plan.containers["main"].settings]
    forged = said.plan.containers["main"]._replace(settings=tuple(settings))
    plan = write_plan(said.plan._replace(containers={"main": forged}))
    result["metadata"]["annotations"] |= {names.PLAN: plan, names.KAI_ISOLATE: "true"}
    isolated, _ = rewritten(result, fleet=fleet_of(T4), policy=ON)

    assert {text} == set(environment(isolated).values())


@pytest.mark.parametrize(
    "annotations",
    [{names.INJECT: "disabled"}, {names.KAI_ISOLATE: "true", names.KAI_MEMORY: "3000"}, {}],
)
def test_other_pods_are_left_alone(annotations: dict[str, str]) -> None:
    """A pod that opted out, is held otherwise, or asks for no amount keeps its own variables."""
    item = container(**({} if names.KAI_MEMORY in annotations else {names.NVIDIA_GPU: "1"}))
    asked = pod(item | {"env": variables(NVIDIA_GPU_MEMORY_LIMIT="x")}, annotations=annotations)
    said = decide(asked, fleet=fleet_of(T4), policy=ON)

    assert isinstance(said, Rewrite)
    env = applied(asked, said)["spec"]["containers"][0]["env"]
    assert variables(NVIDIA_GPU_MEMORY_LIMIT="x") == env
    assert "not held" not in said.summary


@pytest.mark.parametrize("word", [{}, {names.GROWTH: "enabled"}])
@pytest.mark.parametrize("env", [[], variables(NVIDIA_GPU_MEMORY_LIMIT="9000")])
def test_observe_plans_it(word: dict[str, str], env: list[dict[str, str]]) -> None:
    """In observe the plan has what would be written, and the container sees nothing."""
    asked = pod(gpushare() | {"env": env}, annotations=word)
    result, said = rewritten(asked, Mode.OBSERVE, fleet=MIXED, policy=LABELLED)
    plan = said.plan.containers["main"]

    assert None is driver_bytes(plan)
    assert [Done.PLANNED] * 2 == [each.done for each in plan.settings[:2]]
    assert 3 * GIB == plan.settings[1].limit_bytes
    assert "the driver would be asked to hold main to 3072Mi" in said.summary
    assert environment(asked).get(names.DRIVER_LIMIT) == environment(result).get(names.DRIVER_LIMIT)
    assert None is required(result)


def started(*command: str, words: dict[str, str] | None = None, **env: str) -> Any:
    item = gpushare(units="8") | {"command": list(command), "env": variables(**env)}
    asked = pod(item, annotations=words or {})
    return rewritten(asked, fleet=fleet_of(T4), policy=ON)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["vllm", "serve", "m", "--gpu-memory-utilization=0.99"], "until then only the driver"),
        (["vllm", "serve", "m", "--omni", "a.yaml", "--gpu-memory-utilization=.9"], "the driver"),
        (["llama-server", "-ngl", "99"], "until then only the driver"),
        (["sh", "-c", "vllm serve m --gpu-memory-utilization $X"], "until then only the driver"),
    ],
)
def test_what_a_server_does_not_know_the_driver_holds(command: list[str], says: str) -> None:
    """Warnings name the driver, and not eviction, where the driver holds the server."""
    _, said = started(*command)

    assert any(says in text for text in said.warnings)
    assert not any("eviction" in text for text in said.warnings)


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        (["ray", "start", "--block"], "main runs ray"),
        (
            ["sshd", "-D"],
            "main runs sshd, which reads none; the driver is asked to hold main to 8192Mi",
        ),
        (["python", "verl.py"], "the driver is asked to hold main to 8192Mi"),
        (["tritonserver"], "main runs triton, which reads none"),
    ],
)
def test_a_program_that_reads_nothing_is_held_all_the_same(
    command: list[str], summary: str
) -> None:
    """Containers that read nothing of ours are held, and nothing is said of eviction alone."""
    result, said = started(*command)

    assert "8192" == environment(result)[names.DRIVER_LIMIT]
    assert summary in said.summary
    assert not any("eviction alone" in text for text in said.warnings)


def bound(policy: WebhookPolicy = ON, asked: Any = None, fleet: Fleet = MIXED) -> dict[str, Any]:
    result, _ = rewritten(asked or pod(gpushare(units="8")), fleet=fleet, policy=policy)
    return result


def told(exact: dict[str, str], created: dict[str, Any], env: str) -> str:
    settings = read_plan(created["metadata"]["annotations"][names.PLAN]).containers["main"].settings
    return exact[names.ENV_PREFIX + next(each.slot for each in settings if each.env == env)]


@pytest.mark.parametrize(
    ("where", "policy", "share"),
    [
        pytest.param(sized(15360, **YES), LABELLED, "0.937500", id="labelled"),
        pytest.param(sized(15360), ON, "0.937500", id="every node can"),
        pytest.param(sized(15360), WebhookPolicy(), "0.937500", id="switched off since"),
        pytest.param(SILENT, ON, "0.921875", id="a card that is not stated"),
        pytest.param(sized(15360), LABELLED, "0.373333", id="without the label"),
        pytest.param(sized(15360), AUTO, "0.373333", id="not proved"),
        pytest.param(sized(15360, driver="580.1"), ON, "0.373333", id="an old driver"),
    ],
)
def test_at_binding_the_variables_tell(where: Any, policy: WebhookPolicy, share: str) -> None:
    """What is written stays, and shares are of it where the node can hold the container."""
    created = bound()
    exact = exact_values(created, gpu_node(where), policy)

    assert share == told(exact, created, names.XLA_FRACTION)
    held = driver_bytes(read_plan(exact[names.PLAN]).containers["main"])
    assert (None if share == "0.373333" else 8 * GIB) == held


def test_at_binding_what_is_not_ours_does_not_count() -> None:
    """A variable that says something else by now is nothing to reckon with."""
    created = bound()
    for entry in created["spec"]["containers"][0]["env"]:
        if entry["name"] == names.DRIVER_LIMIT:
            entry["value"] = "9000"
    exact = exact_values(created, gpu_node(sized(15360)), ON)

    assert "0.373333" == told(exact, created, names.XLA_FRACTION)


@pytest.mark.parametrize(
    ("by_now", "share", "limit"), [("12Gi", "0.937500", 8), ("6Gi", "0.687500", 6)]
)
def test_another_amount_by_now_is_told_within_what_the_driver_holds(
    by_now: str, share: str, limit: int
) -> None:
    """The driver's limit cannot change at binding, and shares are of it, as of a card."""
    created = bound(
        asked=pod(container(**{names.NVIDIA_GPU: "1"}), annotations={names.MEMORY: "8Gi"})
    )
    other = copy.deepcopy(created)
    other["metadata"]["annotations"][names.MEMORY] = by_now
    exact = exact_values(other, gpu_node(sized(15360)), ON)

    assert share == told(exact, other, names.XLA_FRACTION)
    assert limit * GIB == read_plan(exact[names.PLAN]).containers["main"].limit_bytes


@pytest.mark.parametrize(("burst", "said"), [("6Gi", True), ("2Gi", False)])
def test_a_server_that_cannot_burst_here_is_told_nothing_of_it(burst: str, *, said: bool) -> None:
    """What the driver holds is promised as well where no burst is above the request."""
    server = gpushare() | {"image": "vllm/vllm-openai:v0.20.0", "args": ["--model", "m"]}
    asked = pod(server, annotations={names.BURST: burst})
    warnings = rewritten(asked, fleet=fleet_of(T4), policy=ON)[1].warnings

    assert said == any("configured with the request of" in text for text in warnings)


def test_without_the_setting_nothing_changes() -> None:
    """Where it is off, a container keeps whatever it says itself, twice if it says it twice."""
    said = [*variables(NVIDIA_GPU_MEMORY_LIMIT="1"), *variables(NVIDIA_GPU_MEMORY_LIMIT="2")]
    asked = pod(gpushare() | {"env": said})
    result, outcome = rewritten(asked, fleet=fleet_of(T4))

    assert said == result["spec"]["containers"][0]["env"][:2]
    assert DriverLimits.OFF is WebhookPolicy().driver_limits
    assert "driver" not in outcome.summary
