"""Servers that plan the card's memory by themselves."""

from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import gpushare, pod
from tests.support.rewriting import NO_CARD, decide, environment, rewritten, variables
from webhook.rewrite import Unchanged

APPENDED = "--gpu-memory-utilization=$(GPUFENCE_SERVER_FRACTION)"


def served(args: list[str] | None = None, *, wish: bool = False, **item: Any) -> dict[str, Any]:
    """Build a pod whose container starts vLLM, unless told otherwise."""
    container = gpushare() | {"image": "vllm/vllm-openai:v0.11"} | item
    if args is not None:
        container["args"] = args
    return pod(container, annotations={names.ARGS: "enabled"} if wish else {})


def test_a_server_without_its_flag_is_not_capped_below_its_back() -> None:
    """
    A vLLM without a flag gets no fraction of PyTorch's, which would make it die, but a warning.
    """
    result, said = rewritten(served(["--model", "m"]))
    seen = environment(result)

    assert names.PYTORCH_CONF not in seen
    assert names.ENV_FRACTION not in seen
    assert "0.166666" == seen[names.ENV_SERVER]
    assert "write --gpu-memory-utilization 0.166666 or set gpufence.io/args" in said.warnings[0]
    assert said.plan.containers["main"].cap_bytes is None


@pytest.mark.parametrize(
    "args",
    [
        ["--gpu-memory-utilization=0.1666"],
        ["--gpu-memory-utilization", "0.1"],
        ["--gpu_memory_utilization", "0.1"],
        ["--gpu-memory-utilization=$(GPUFENCE_SERVER_FRACTION)"],
        ["--gpu-memory-utilization=0.9", "--gpu-memory-utilization=0.1"],
    ],
)
def test_a_server_that_knows_its_share_is_capped_at_it(args: list[str]) -> None:
    """
    A vLLM whose own flag is within the share gets PyTorch's fraction, the whole limit of it.
    """
    result, said = rewritten(served(args))

    assert "per_process_memory_fraction:0.200000" == environment(result)[names.PYTORCH_CONF]
    assert () == said.warnings
    assert args == result["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("flag", ["0.9", "junk", "$(MINE)"])
def test_a_flag_above_the_share_is_warned_about(flag: str) -> None:
    """
    A flag above the share, or one that cannot be read, is compared with the share and named.
    """
    _, said = rewritten(served([f"--gpu-memory-utilization={flag}"]))

    assert f'"{flag}" takes more than the share 0.166666' in said.warnings[0]


def test_the_flag_is_appended_on_demand() -> None:
    """
    With gpufence.io/args the flag is appended once, reading a slot that the binder makes exact.
    """
    result, _ = rewritten(served(["--model", "m"], wish=True))

    assert ["--model", "m", APPENDED] == result["spec"]["containers"][0]["args"]
    assert isinstance(decide(result), Unchanged)


def test_a_flag_above_the_share_is_lowered_where_it_stands() -> None:
    """A flag of the user's that is too large is lowered where it stands."""
    result, said = rewritten(served(["--gpu-memory-utilization=0.9"], wish=True))

    assert [APPENDED] == result["spec"]["containers"][0]["args"]
    assert "0.166666" == environment(result)[names.ENV_SERVER]
    assert '--gpu-memory-utilization "0.9" is above the share' in said.warnings[0]


def test_a_flag_within_the_share_is_left_alone() -> None:
    """Nothing is appended where the user's own flag is small enough."""
    args = ["--gpu-memory-utilization=0.1"]
    result, _ = rewritten(served(args, wish=True))

    assert args == result["spec"]["containers"][0]["args"]


def test_observe_appends_nothing() -> None:
    """In observe the arguments stay as they are."""
    result, _ = rewritten(served(["--model", "m"], wish=True), Mode.OBSERVE)

    assert ["--model", "m"] == result["spec"]["containers"][0]["args"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"command": ["sh", "-c"], "args": ["vllm serve m"]}, "a shell starts the server"),
        ({"command": ["/bin/bash", "-ec", "vllm serve m"]}, "a shell starts the server"),
        ({"args": ["-c", "vllm serve m"]}, "a shell starts the server"),
        ({}, "its arguments stand in the image"),
    ],
)
def test_nothing_is_appended_where_it_would_not_arrive(item: dict[str, Any], reason: str) -> None:
    """Where an argument would not reach the server, nothing is appended and the reason is said."""
    asked = served(wish=True, **item)
    result, said = rewritten(asked)

    assert asked["spec"]["containers"][0].get("args") == result["spec"]["containers"][0].get("args")
    assert f"{reason}: write" in said.warnings[0]


def test_an_image_without_arguments_of_its_own_takes_one() -> None:
    """TensorFlow Serving's image has no arguments, so ours can stand alone."""
    result, _ = rewritten(served(wish=True, image="tensorflow/serving:2.19-gpu"))

    assert ["--per_process_gpu_memory_fraction=$(GPUFENCE_SERVER_FRACTION)"] == (
        result["spec"]["containers"][0]["args"]
    )


def test_triton_is_told_through_its_backend() -> None:
    """Triton's flag names the backend, and its absence alone is no fault."""
    image: Any = {"image": "nvcr.io/nvidia/tritonserver:24.08", "command": ["tritonserver"]}
    _, quiet = rewritten(served(**image))
    flag = "--backend-config=tensorflow,gpu-memory-fraction="
    result, _ = rewritten(served([f"{flag}0.9"], wish=True, **image))

    assert () == quiet.warnings
    assert f"{flag}$(GPUFENCE_SERVER_FRACTION)" == result["spec"]["containers"][0]["args"][-1]


def test_without_a_card_nothing_is_appended() -> None:
    """Where no card is known the flag would be empty, so it is not appended."""
    result, said = rewritten(served(["--model", "m"], wish=True), policy=NO_CARD)

    assert ["--model", "m"] == result["spec"]["containers"][0]["args"]
    assert any("no argument is appended" in text for text in said.warnings)


def test_a_card_unknown_and_no_wish_is_silent_about_arguments() -> None:
    """Without the wish, an unknown card is not blamed on arguments."""
    _, said = rewritten(served(["--model", "m"]), policy=NO_CARD)

    assert not any("argument" in text for text in said.warnings)


def test_arguments_need_a_server() -> None:
    """gpufence.io/args on a container that starts no known server is worth a warning."""
    _, said = rewritten(served(["x"], wish=True, image="app:1"))

    assert "no server with a memory flag is started here" in said.warnings[0]


def test_a_wish_for_the_servers_own_variable_counts() -> None:
    """A user may hold the server lower still through the variable that the flag reads."""
    asked = served(["--model", "m"], wish=True, env=variables(GPUFENCE_SERVER_FRACTION="0.05"))
    result, _ = rewritten(asked)

    assert "0.05" == environment(result)[names.ENV_SERVER]
