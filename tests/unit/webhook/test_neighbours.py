"""What is said of containers beside each other: how they split a limit, and who asks for none."""

from typing import Any

import pytest

from gpufence import names
from tests.support.builders import container, pod, sidecar
from tests.support.rewriting import decide, rewritten, variables
from webhook.rewrite import Unchanged

GPU = {names.NVIDIA_GPU: "1"}
SERVER: dict[str, Any] = {"image": "ollama/ollama:0.30.1"}


def warnings(*containers: dict[str, Any], **annotations: str) -> tuple[str, ...]:
    said = {
        names.MEMORY: "6Gi",
        **{f"gpufence.io/{key}": text for key, text in annotations.items()},
    }
    _, result = rewritten(pod(*containers, annotations=said))
    return result.warnings


def test_an_equal_split_is_said_with_the_key_that_changes_it() -> None:
    """Containers that get equal parts of the pod's amount are named, with what each gets."""
    (said,) = warnings(container("engine", **GPU), container("cache", **GPU))

    assert "3072Mi each for engine, cache" in said
    assert "gpufence.io/memory.engine gives engine another part" in said


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


def test_a_helper_that_runs_nothing_known_is_passed_over() -> None:
    """A proxy or a log shipper beside the server needs no word."""
    assert () == warnings(container(**GPU), container("proxy"))


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
