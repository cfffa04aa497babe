"""A pod that is read just within its budget of steps is read in each later pass as well."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import container, pod
from tests.support.examples import examples
from tests.support.rewriting import applied, decide
from webhook.rewrite import Rewrite, Unchanged

MOST_TIMES = 40_000
VLLM = "vllm serve m --port 1"
_servers = st.sampled_from(
    [
        f"exec {VLLM}",
        f"{VLLM} --gpu-memory-utilization 0.95",
        f"A=1\n{VLLM} $A & wait",
        f"bash -c '{VLLM}'",
        f'bash -c "exec timeout 5 {VLLM}"',
        "python3 -m sglang.launch_server --model m",
    ]
)
_fillings = st.sampled_from(
    ["echo x\n", "A=b\n", "# a comment that says nothing\n", "x 'y z' \\\n"]
)


def _asked(filling: str, times: int, server: str, env: int) -> dict[str, Any]:
    script = f"{filling * times}\n{server}"
    item = container("main", **{names.NVIDIA_GPU: "1"}) | {"command": ["sh", "-c", script]}
    item["env"] = [{"name": f"V{n}", "value": "x"} for n in range(env)]
    return pod(item, annotations={names.MEMORY: "6Gi", names.ARGS: "enabled"})


def _read(asked: dict[str, Any]) -> bool:
    said = decide(asked)
    return isinstance(said, Rewrite) and said.plan.containers["main"].runs != ""


@examples(15)
@given(_fillings, _servers, st.sampled_from([0, 1, 50]), st.integers(0, 3))
def test_what_was_read_once_is_read_again(filling: str, server: str, env: int, below: int) -> None:
    """At the edge of the budget, too, a second pass finds nothing to do."""
    least, most = 0, MOST_TIMES
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (
            (middle, most) if _read(_asked(filling, middle, server, env)) else (least, middle)
        )
    for times in (max(least - below, 0), least + 1 + below):
        asked = _asked(filling, times, server, env)
        said = decide(asked, Mode.CAP)

        assert isinstance(said, Rewrite)
        assert isinstance(decide(applied(asked, said), Mode.CAP), Unchanged)
