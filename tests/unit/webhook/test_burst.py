"""What the containers of a pod are told that may go above what is promised to it."""

from typing import Any

import pytest

from gpufence import names
from gpufence.plan import read_plan
from gpufence.quantity import GIB, MIB
from tests.support.builders import card, gpushare, node, pod
from tests.support.rewriting import NO_CARD, POLICY, environment, gpu_node, rewritten
from webhook.fleet import Fleet
from webhook.rewrite.binding import exact_values

T4 = gpu_node(node(card(), name="t4"))
H100 = gpu_node(node(card(memory_bytes=80 * GIB, model="H100"), name="h100"))
BURST = {names.BURST: "10Gi"}
HOOK = {**BURST, names.PYTHON_HOOK: "enabled"}
REQUEST = "configured with the request of 4096Mi and not the limit of 10240Mi"


def asking(said: dict[str, str], **item: Any) -> dict[str, Any]:
    """Build a pod that is promised 4 GiB."""
    return pod(gpushare(units="4") | item, annotations=said)


@pytest.mark.parametrize(
    ("item", "said", "limit"),
    [
        ({}, {}, 10),
        ({"image": "vllm/vllm-openai:v0.20.0"}, {}, 4),
        ({"image": "tensorflow/serving:2.18.0"}, {}, 4),
        ({"image": "vllm/vllm-openai:v0.20.0"}, {names.BURST_SERVERS: "enabled"}, 10),
        ({"image": "yanwk/comfyui-boot:cu128"}, {}, 10),
        ({"args": ["--max-model-len=9"]}, {}, 4),
        ({"image": "vllm/vllm-openai:v0.20.0"}, {names.BURST: "100%"}, 4),
    ],
    ids=["framework", "vllm", "tf-serving", "servers, too", "comfyui", "some server", "no burst"],
)
def test_what_never_gives_back_is_told_its_request(
    item: dict[str, Any], said: dict[str, str], limit: int
) -> None:
    """Frameworks get the limit, servers the request and a warning, unless their owner says so."""
    made, decided = rewritten(asking(BURST | said, **item), fleet=Fleet([T4]))

    plan = read_plan(made["metadata"]["annotations"][names.PLAN])
    assert limit * GIB == plan.containers["main"].limit_bytes
    warned = [each for each in decided.warnings if REQUEST in each]
    assert (limit == 4 and names.BURST not in said) == bool(warned)


def test_the_hook_reads_by_what_it_gives_back() -> None:
    """It reads the request, and until the binding what gives back soonest on any card."""
    made, _ = rewritten(asking(HOOK), fleet=Fleet([T4, H100]))
    seen = environment(made)
    exact = exact_values(made, T4, POLICY)

    assert (str(4 * GIB), str(8 * GIB)) == (
        seen[names.ENV_REQUEST_BYTES],
        seen[names.ENV_GIVE_BACK],
    )
    assert str(1536 * MIB) == exact[f"{names.ENV_PREFIX}{names.ENV_GIVE_BACK}"]


def test_processes_share_the_request_of_their_container() -> None:
    """The hook of each of several processes keeps to an equal part."""
    made, _ = rewritten(asking({**HOOK, names.PROCESSES_PER_CARD: "4"}))

    assert str(GIB) == environment(made)[names.ENV_REQUEST_BYTES]


@pytest.mark.parametrize(
    "said", [BURST, {names.PYTHON_HOOK: "enabled"}, {**HOOK, names.INJECT: "disabled"}]
)
def test_only_a_hook_in_a_pod_that_bursts_is_told(said: dict[str, str]) -> None:
    """Without hook, burst or settings nothing is to be given back."""
    made, _ = rewritten(asking(said))

    assert set() == {names.ENV_REQUEST_BYTES, names.ENV_GIVE_BACK} & environment(made).keys()


def test_nothing_is_told_beyond_the_request_until_the_card_is_known() -> None:
    """Where no node tells its cards the request counts, and the limit from the binding on."""
    made, _ = rewritten(asking(HOOK), policy=NO_CARD)
    exact = exact_values(made, T4, NO_CARD)
    slot = f"{names.ENV_PREFIX}{names.ENV_LIMIT_BYTES}"

    assert str(4 * GIB * 7 // 10) == environment(made)[names.ENV_LIMIT_BYTES]
    assert str(10 * GIB * 7 // 10) == exact[slot]
    assert str(4 * GIB) == exact[f"{names.ENV_PREFIX}{names.ENV_REQUEST_BYTES}"]


def test_a_share_of_an_unknown_card_promises_next_to_nothing() -> None:
    """Until the card is known the hook gives back all it can: zero would read as no request."""
    asked = pod(annotations={**HOOK, names.KAI_FRACTION: "0.25"})
    made, _ = rewritten(asked, policy=NO_CARD)

    assert "1" == environment(made)[names.ENV_REQUEST_BYTES]
