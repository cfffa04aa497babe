"""
What is started by wrappers, shells and interpreters, where the golden containers do not say it.
"""

from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import container, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import NO_CARD, decide, environment, rewritten, variables
from webhook.engines.launch import UNREAD, Budget, read_launch
from webhook.rewrite import Refusal

VLLM = ("vllm", "serve", "m")
MOST_SECONDS = 2


def runs(*command: str, image: str = "x/vllm-like", **known: str) -> str | None:
    """Return what a command runs; None where it is nothing known."""
    launch = read_launch(image, command, (), "", known, Budget())
    return launch.engine.name if launch is not None and launch.engine is not None else None


@pytest.mark.parametrize(
    "command",
    [
        ("timeout", "-k", "5", "3600", *VLLM),
        ("conda", "run", "-n", "env", *VLLM),
        ("uv", "run", "--python", "3.12", *VLLM),
        ("env", "-u", "X", "A=b", *VLLM),
        ("taskset", "0x3", *VLLM),
        ("sh", "-c", "A=1 B=2 exec vllm serve m"),
        ("sh", "-o", "pipefail", "-c", "vllm serve m"),
        ("sh", "-c", "export M=m; vllm serve $M"),
        ("sh", "-c", "NAME=vllm; $NAME serve m"),
        ("sh", "-c", "eval vllm serve m"),
        ("python3", "-W", "ignore", "-m", "vllm.entrypoints.openai.api_server"),
        ("python3", "-m", "torch.distributed.run", "-m", "vllm.entrypoints.api_server"),
        ("torchrun", "--nproc_per_node", "1", "-m", "vllm.entrypoints.api_server"),
        ("/opt/nvidia/nvidia_entrypoint.sh", *VLLM),
        ("mpirun", "-n", "1", "bash", "-c", "vllm serve m"),
        ("sh", "-c", "if true; then vllm serve m; fi"),
        ("$(PROGRAM)", "serve", "m"),
        ("su", "user", "-c", "vllm serve m"),
        ("sh", "-c", "conda activate env && ${BIN:-vllm} serve m"),
        ("python3", "-m", "vllm_tgis_adapter"),
        ("python3", "-uIm", "vllm.entrypoints.api_server"),
        ("env", "--split-string", "-i vllm serve", "m"),
        ("uvx", "--from", "vllm", *VLLM),
        ("/init", "s6-setuidgid", "app", *VLLM),
        ("py-spy", "record", "-o", "x", "--", *VLLM),
        ("bash", "/entrypoint.sh", "/entrypoint.sh", *VLLM),
        ("sh", "-c", "A=vllm; A+=' serve'; A+=\" m\"; $A"),
        ("sh", "-c", 'A+=(vllm serve); A+=(m); "${A[@]}"'),
        ("sh", "-c", "set vllm; set -- vllm serve m; $*"),
        ("python3", "/usr/lib/python3/vllm/entrypoints/openai/api_server.py"),
    ],
)
def test_what_a_wrapper_starts_is_found(command: tuple[str, ...]) -> None:
    """A server is found behind whatever starts it."""
    assert "vllm" == runs(*command, PROGRAM="vllm")


@pytest.mark.parametrize(
    "command",
    [
        ("timeout", "60"),
        ("conda", "install", "vllm"),
        ("mpirun", "-n", "2", "hostname"),
        ("python3",),
        ("sh", "-c"),
        ("sh", "-c", ""),
        ("sh", "-c", "for name in vllm serve; do echo $name; done"),
        ("sh", "-c", "A=vllm"),
        ("sh", "-c", "declare -x A; export B=$(date)"),
        ("trap",),
        ("A=b",),
        ("env", "-S", ""),
        ("env", "-S"),
        ("serve", "run"),
        ("python3", "-m"),
        ("sh", "-c", "A=(vllm serve m)"),
        ("sh", "-c", "set -- vllm serve m; shift; $*"),
        ("su", "user"),
        ("sh", "-c", "conda activate vllm && sleep infinity"),
    ],
)
def test_what_starts_nothing_runs_nothing(command: tuple[str, ...]) -> None:
    """A wrapper without a program, or words that are only about one, run nothing that is known."""
    assert runs(*command) is None


def test_wrappers_are_followed_however_many_there_are() -> None:
    """A server is found behind fifty wrappers and a dozen shells."""
    assert "vllm" == runs(*("nohup",) * 50, *VLLM)
    assert "vllm" == runs(*("eval",) * 12, *VLLM)


def test_shells_without_end_are_given_up() -> None:
    """Shells nested without end are not followed, and may start anything."""
    nested = read_launch("vllm/x", ("eval",) * 100 + VLLM, (), "", {}, Budget())

    assert nested is not None
    assert (None, "vllm") == (nested.engine, nested.evidence and nested.evidence.word)


@pytest.mark.parametrize(
    "item",
    [
        {"args": ["x" * (1 << 20)]},
        {"command": ["sh", "-c", "vllm " + "'" * (1 << 20)]},
        {"command": ["sh", "-c", "vllm " + "$(" * (1 << 19)]},
        {"args": ["--gpu-memory-utilization"] * 100_000},
        {"command": ["env"] * 100_000},
        {"command": ["sh", "-c", "vllm " + "a=b " * 200_000]},
        {"command": ["bash", "/entrypoint.sh"] * 1000 + ["vllm"]},
        {"command": ["sh", "-c", "A=(vllm)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 500 + '"${A[@]}"']},
        {"command": ["sh", "-c", f"A=({'x ' * 250})\n" + ('"${A[@]}" ' * 20 + "\n") * 60 + "vllm"]},
        {"command": ["sh", "-c", "A=vllm\n" + 'A+="$A$A$A$A$A$A$A$A"\n' * 400 + "$A " * 1000]},
        {"command": ["sh", "-c", "vllm $( #" * 1700]},
        {"command": ["sh", "-c", "vllm " + "$'\\" * 5000]},
    ],
)
def test_a_hostile_command_is_read_fast(item: dict[str, Any]) -> None:
    """A mebibyte of arguments takes no longer than a moment, whatever stands in it."""
    asked = container("main", **{names.NVIDIA_GPU: "1"}) | {"image": "vllm/vllm-openai"} | item
    made = pod(asked, annotations={names.MEMORY: "6Gi", names.ARGS: "enabled"})

    assert quiet_seconds(decide, lambda: made, enough=MOST_SECONDS) < MOST_SECONDS


def test_many_containers_take_no_longer_than_one() -> None:
    """The texts of all containers together are bounded, however many there are."""
    script = "vllm " + "x y " * 7000
    items = [
        container(f"c{at}", **{names.NVIDIA_GPU: "1"})
        | {"image": "x", "command": ["sh", "-c", script]}
        for at in range(60)
    ]
    made = pod(*items, annotations={names.MEMORY: "6Gi"})

    assert quiet_seconds(decide, lambda: made, enough=MOST_SECONDS) < MOST_SECONDS


def test_a_command_that_takes_too_much_to_read_is_unread() -> None:
    """Of such a command nothing is known but what the user says runs."""
    long = "a b;" * 40_000
    named, unread = (
        read_launch("x", ("sh", "-c", f"ollama {long}"), (), said, {}, Budget())
        for said in ("vllm", "")
    )

    assert named is not None
    assert ("vllm", None) == (named.engine and named.engine.name, named.evidence)
    assert unread is not None
    assert (None, UNREAD) == (unread.engine, unread.evidence)


NESTED = {
    "A": "sh -c \"$B\"''\n" * 300,
    "B": "sh -c \"$C\"''\n" * 300,
    "C": "vllm serve m\n" * 300,
}
TOO_MUCH: dict[str, dict[str, Any]] = {
    "nested": {"command": ["sh", "-c", "sh -c \"$A\"''\n" * 300], "env": variables(**NESTED)},
    "references": {"args": ["$(C)" * 8000 + "\U0001f600"], "env": variables(**NESTED)},
}


@pytest.mark.parametrize("what", sorted(TOO_MUCH))
def test_a_pod_that_takes_too_much_to_read_is_refused_in_evict(what: str) -> None:
    """In evict nothing unread is let in; the refusal names the container and what helps."""
    refused = decide(served(image="vllm/x", **TOO_MUCH[what]), Mode.EVICT)

    assert isinstance(refused, Refusal)
    assert "main: command, arguments and variables take more to read" in refused.message
    assert f"{names.FRAMEWORK_OF_CONTAINER}main" in refused.message


@pytest.mark.parametrize("what", sorted(TOO_MUCH))
@pytest.mark.parametrize("mode", [Mode.CAP, Mode.OBSERVE])
def test_what_is_unread_gets_no_cap_of_pytorch(what: str, mode: Mode) -> None:
    """Elsewhere it is let in with a warning, and a planner in it does not die of a cap."""
    result, said = rewritten(served(image="vllm/x", **TOO_MUCH[what]), mode)

    assert "take more to read" in said.warnings[0]
    assert names.PYTORCH_CONF not in environment(result)
    assert {names.PYTORCH_CONF, names.ENV_FRACTION}.isdisjoint(
        setting.env for setting in said.plan.containers["main"].settings
    )


def test_what_one_container_takes_to_read_another_has_no_more() -> None:
    """All containers of a pod have one budget, and whoever comes after it is spent is unread."""
    greedy = served(image="vllm/x", **TOO_MUCH["nested"])
    other = container("other", **{names.NVIDIA_GPU: "1"}) | {"image": "vllm/x", "args": ["serve"]}
    greedy["spec"]["containers"].append(other)
    _, said = rewritten(greedy)

    assert ["main", "other"] == [
        text.partition(":")[0] for text in said.warnings if "take more to read" in text
    ]


def served(*command: str, said: dict[str, str] | None = None, **item: Any) -> dict[str, Any]:
    asked = container("main", **{names.NVIDIA_GPU: "1"}) | {"image": "x"} | item
    if command:
        asked["command"] = list(command)
    return pod(asked, annotations={names.MEMORY: "6Gi", **(said or {})})


@pytest.mark.parametrize("word", ["vLLM", "tgi2", "VLLM ", "ollama,vllm"])
@pytest.mark.parametrize("key", [names.FRAMEWORK, f"{names.FRAMEWORK_OF_CONTAINER}main"])
def test_a_word_for_what_runs_is_checked(word: str, key: str) -> None:
    """A framework that nobody knows is warned of in cap, refused in evict, naming those known."""
    asked = served("python", "x.py", said={key: word})
    _, said = rewritten(asked)
    refused = decide(asked, Mode.EVICT)

    assert "is not a choice; write one of vllm, sglang, tgi" in said.warnings[0]
    assert isinstance(refused, Refusal)
    assert "is not a choice; write one of vllm" in refused.message


def test_what_runs_is_said_of_one_container() -> None:
    """A word for one container goes before the one for all."""
    own = {names.FRAMEWORK: "sglang", f"{names.FRAMEWORK_OF_CONTAINER}main": "vllm"}
    _, said = rewritten(served("/start.sh", said=own))

    assert "vllm" == said.plan.containers["main"].runs


def test_a_word_for_no_container_is_noted() -> None:
    """A word for a container that is not there names those that are."""
    _, said = rewritten(served("x", said={f"{names.FRAMEWORK_OF_CONTAINER}other": "vllm"}))

    assert (
        "is for a container the pod does not have; end the key with one of main" in said.warnings[0]
    )


def test_the_namespaces_word_for_a_container_counts() -> None:
    """A namespace may say what runs in containers of a name, beside a pod's own amount."""
    words = {f"{names.FRAMEWORK_OF_CONTAINER}main": "tgi"}
    _, said = rewritten(served("/start.sh"), namespace=words)

    assert "tgi" == said.plan.containers["main"].runs


def test_a_named_server_is_as_its_image_is() -> None:
    """A server that the user names is of the version that its image has."""
    image = "ollama/ollama:0.30.1"
    _, said = rewritten(served("/start.sh", image=image, said={names.FRAMEWORK: "ollama"}))

    assert ("LLAMA_ARG_FIT_TARGET",) == said.plan.containers["main"].reads


def test_a_named_server_is_told_where_its_flag_stands() -> None:
    """Of several programs the one with the flag is taken for the server that the user names."""
    script = "prepare --x; serve-it --gpu-memory-utilization 0.9; clean"
    said = {names.FRAMEWORK: "vllm", names.ARGS: "enabled"}
    result, _ = rewritten(served("sh", "-c", script, said=said))

    assert (
        script.replace("0.9", "$(GPUFENCE_SERVER_FRACTION)")
        == (result["spec"]["containers"][0]["command"][2])
    )


def test_no_strict_variable_is_empty() -> None:
    """Where no card is known, readers that choke on empty text get none."""
    asked = served("text-generation-launcher")
    result, _ = rewritten(asked, policy=NO_CARD)

    assert names.TGI_FRACTION not in environment(result)


def test_an_amount_left_free_needs_a_card() -> None:
    """What is to be left free cannot be told without a card, and the user's own stays."""
    asked = served("ollama", "serve", env=variables(OLLAMA_GPU_OVERHEAD="5"))
    result, _ = rewritten(asked, policy=NO_CARD)

    assert "5" == environment(result)[names.OLLAMA_OVERHEAD]


@pytest.mark.parametrize(
    ("value", "counts"),
    [("12.5", "12.5"), ("junk", "10.801"), ("1", "10.801")],
)
def test_gibibytes_left_free_are_read(value: str, counts: str) -> None:
    """ComfyUI's own reserve counts where it leaves enough free."""
    command = ("python", "/ComfyUI/main.py", "--reserve-vram", value)
    result, _ = rewritten(served(*command, said={names.ARGS: "enabled"}))
    last = result["spec"]["containers"][0]["command"][-1]

    assert counts == (environment(result)[names.ENV_SERVER_MEMORY] if "$" in last else last)


@pytest.mark.parametrize(
    ("value", "stays"),
    [("4GB", True), ("4GiB", True), ("0.25", True), ("5000000000", False), ("lots", False)],
)
def test_amounts_of_rapids_are_read(value: str, *, stays: bool) -> None:
    """A pool's size counts as RAPIDS reads it: bytes, with a unit, or a share of the card."""
    flags = ("--rmm-pool-size=1GB", f"--rmm-maximum-pool-size={value}")
    result, _ = rewritten(served("dask-cuda-worker", *flags, said={names.ARGS: "enabled"}))

    assert stays == (result["spec"]["containers"][0]["command"][-1] == flags[-1])


def test_the_hook_leaves_a_server_alone_that_plans_by_itself() -> None:
    """With the start-up hook, too, a server that keeps to its plan gets no cap of PyTorch's."""
    command = ("vllm", "serve", "m", "--gpu-memory-utilization=0.1")
    seen = environment(rewritten(served(*command, said={names.PYTHON_HOOK: "enabled"}))[0])

    assert seen.keys().isdisjoint({names.ENV_FRACTION, names.PYTORCH_CONF})


def test_processes_that_share_a_card_divide_a_servers_share() -> None:
    """Of a limit for two servers each plans half, after both contexts."""
    said = {names.ARGS: "enabled", names.PROCESSES_PER_CARD: "2"}
    seen = environment(rewritten(served("vllm", "serve", "m", said=said))[0])

    assert "0.166666" == seen[names.ENV_SERVER]


def test_a_shell_without_the_flag_is_refused_under_the_namespaces_amount_too() -> None:
    """How a server is started is the pod's own fault, whoever named the amount that it breaks."""
    item = container("main", **{names.NVIDIA_GPU: "1"}) | {"image": "x"}
    asked = pod(item | {"command": ["sh", "-c", 'eval "vllm serve m \\"--x\\""']})
    said = decide(asked, Mode.EVICT, {names.MEMORY: "6Gi"})

    assert isinstance(said, Refusal)
    assert "--gpu-memory-utilization $(GPUFENCE_SERVER_FRACTION) (gpufence cannot" in said.message
