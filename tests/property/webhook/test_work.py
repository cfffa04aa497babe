"""Whatever a pod says, deciding about it takes a bounded time and memory, in each pass."""

import copy
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import card, container, node, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import POLICY, applied, decide, gpu_node
from tests.support.running import examples
from webhook.fleet import Fleet
from webhook.frameworks.table import DEFEATS, TABLE
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite

MOST_SECONDS = 0.030
MOST_BYTES = 64 * 2**20
ETCD_BYTES = 3 * 2**19
FLEET = Fleet(
    gpu_node(node(card(n % 3), name=f"n{n}", labels={"pool": "x", "number": str(n)}))
    for n in range(200)
)
_pieces = st.sampled_from(
    [
        *("sh -c \"$A\"''\n", "sh -c \"$B\"'' ;", 'eval "$A" ', "bash -lc '$C'\n", "$A $B "),
        *("$(A)", "${A}${B} ", "$$", "'", '"', "`", "\\", "$(", "${", "(", ")", "{", "}", "#"),
        *("&", "|", ";", "<<A\n", "a<<B\n", "\n", " ", "\t", "=", "a=b ", "A+=x ", 'A+="$A$A" '),
        *("A=(b c) ", '"${L[@]}" ', 'L+=("${L[@]}" x) ', "set -- $A\n", '"$@" ', "shift\n", "if "),
        *("then ", "fi;", "vllm serve m ", "vllm serve m\n", "env -S 'a b' ", "exec "),
        *("mpirun -n 2 ", "nohup ", "python3 -m vllm.entrypoints.x ", "vllm/entrypoints/"),
        *("sglang/srt/", "comfyui/main.py/", "entrypoint", "entrypoint\n"),
        *("--gpu-memory-utilization 0.9 ", "-cccccccc", "ray start;", "\U0001f600", "İ", "ß", "é"),
        *("0", "9", ".", ",", "-", "--", "_", "x", "gpu_memory_", "mem", "text-generation"),
        *("per_process_memory_fraction:0.9,", "backend:", " : ", "%", "1e9", "/", "\\\n", "$'\\'"),
        *('"\\""', "$((", "<(", "busybox ", "su x -c ", "timeout 5 ", "-m ", "-c "),
    ]
)


class Text(NamedTuple):
    """A text of a few pieces, each as often as something repeats."""

    head: str
    parts: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        body = "".join(piece * (length // len(piece) + 1) for piece, length in self.parts)
        return (self.head + body)[:30_000]


class Item(NamedTuple):
    """What a container starts, with what variables and mounts."""

    image: Text
    shell: tuple[str, ...]
    command: tuple[Text, ...]
    args: tuple[Text, ...]
    repeated: int
    variables: tuple[tuple[str, Text], ...]
    source: str
    many: str
    more: int
    mounts: int

    def written(self) -> dict[str, Any]:
        env: list[dict[str, Any]] = [{"name": name, "value": str(t)} for name, t in self.variables]
        if self.source:
            path = f"metadata.annotations['{names.ENV_PREFIX}{self.source}']"
            env.append({"name": _WATCHED[0], "valueFrom": {"fieldRef": {"fieldPath": path}}})
        args = [str(text) for text in self.args]
        return {
            "image": str(self.image),
            "command": [*self.shell, *map(str, self.command)],
            "args": args * min(self.repeated, ETCD_BYTES // 4 // (sum(map(len, args)) + 1)),
            "env": [*env, *_inside(self.many, self.more)],
            "volumeMounts": [*_inside("volumeMounts", self.mounts)],
        }


class Hostile(NamedTuple):
    """How a pod of up to 1.5 MiB is made, which an API server would hand over."""

    containers: int
    items: tuple[Item, ...]
    memory: str
    burst: str
    enabled: frozenset[str]
    forged: tuple[tuple[str, Text], ...]
    keys: str
    annotations: int
    lists: tuple[tuple[str, int], ...]

    def body(self) -> bytes:
        asked = container("{name}", **{names.NVIDIA_GPU: "1"})
        written = [orjson.dumps(asked | item.written()) for item in self.items]
        annotations = {f"{self.keys}{n}": "1" for n in range(self.annotations)}
        annotations |= {names.BURST: self.burst} if self.burst else {}
        annotations |= {names.MEMORY: self.memory, **dict.fromkeys(self.enabled, "enabled")}
        annotations |= {key: str(text) for key, text in self.forged}
        lists = {name: orjson.Fragment(_many(name, count)) for name, count in self.lists}
        whole = pod(annotations=annotations, **lists)
        whole["spec"]["containers"] = []
        room = ETCD_BYTES - len(orjson.dumps(whole))
        assume(len(written[0]) < room)
        count = min(self.containers, room * len(written) // (sum(map(len, written)) + 10))
        whole["spec"]["containers"] = [
            orjson.Fragment(written[n % len(written)].replace(b"{name}", b"c%d" % n, 1))
            for n in range(max(count, 1))
        ]
        return orjson.dumps(whole)


_WATCHED = sorted({*(row.env for row in TABLE), *DEFEATS, names.VLLM_ARGS})
_MANY: dict[str, Callable[[int], Any]] = {
    "volumes": lambda n: {"name": f"v{n}"},
    "tolerations": lambda n: {"key": f"k{n}", "operator": "Exists"},
    "resourceClaims": lambda n: {"name": f"r{n}", "resourceClaimName": "r"},
    "affinity": lambda n: {
        "matchExpressions": [{"key": "number", "operator": "Gt", "values": [str(n)]}]
    },
    "nodeSelector": lambda n: {f"k{n}": "v"},
    "short": lambda n: {"name": f"V{n}"},
    "chain": lambda n: {"name": f"V{n}", "value": f"$(V{n + 1})"},
    "doubles": lambda n: {"name": _WATCHED[-1], "value": str(n)},
    "volumeMounts": lambda n: {"name": "v", "mountPath": f"/m{n}"},
}
"""One of each list, by its number."""
_LISTS = ["affinity", "nodeSelector", "resourceClaims", "tolerations", "volumes"]


@cache
def _many(name: str, count: int) -> bytes:
    """Return a list as JSON, which is written once for all examples."""
    made = [_MANY[name](n) for n in range(count)]
    if name == "nodeSelector":
        return orjson.dumps({key: value for item in made for key, value in item.items()})
    if name == "affinity":
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": made}}
        return orjson.dumps({"nodeAffinity": required})
    return orjson.dumps(made)


def _inside(name: str, count: int) -> list[orjson.Fragment]:
    return [orjson.Fragment(_many(name, count)[1:-1])] if count else []


_few = st.sampled_from([0, 0, 1, 10, 100])
_counts = st.sampled_from([0, 0, 1, 10, 100, 600, 1000, 4000, 8000, 40_000])
_long_lengths = st.sampled_from([1, 3, 10, 100, 1000, 5000, 20_000, 30_000])
_texts = st.builds(
    Text,
    st.sampled_from(["", "vllm ", "sh -c ", "A=1 "]),
    st.lists(st.tuples(_pieces, _long_lengths), min_size=1, max_size=4).map(tuple),
)
_images = st.sampled_from(["x", "vllm/vllm-openai:v0.11.0", "rayproject/ray", "nvcr.io/nim/x:1.0"])
_items = st.builds(
    Item,
    image=st.one_of(_images.map(lambda name: Text(name, ())), _texts),
    shell=st.sampled_from([(), ("sh", "-c"), ("bash", "-lc"), ("env",), ("python3",), ("mpirun",)]),
    command=st.lists(_texts, max_size=3).map(tuple),
    args=st.lists(_texts, max_size=2).map(tuple),
    repeated=st.sampled_from([1, 1, 1, 30, 900]),
    variables=st.lists(
        st.tuples(st.sampled_from(["A", "B", "C", "L", *_WATCHED]), _texts), max_size=4
    ).map(tuple),
    source=st.sampled_from(["", "s1", "x"]),
    many=st.sampled_from(["short", "chain", "doubles"]),
    more=_counts,
    mounts=_few | _counts,
)
_hostile = st.builds(
    Hostile,
    containers=st.sampled_from([1, 2, 7, 60, 64]),
    items=st.lists(_items, min_size=1, max_size=3).map(tuple),
    memory=st.sampled_from(["6Gi", "60Gi", "9" * 100, "1e99999", "0.1", "700Mi"]),
    burst=st.sampled_from(["", "card", "60Gi", "9" * 100 + "%"]),
    enabled=st.frozensets(st.sampled_from([names.ARGS, names.PYTHON_HOOK, names.GROWTH])),
    forged=st.lists(
        st.tuples(st.sampled_from([names.PLAN, names.FRAMEWORK, "x"]), _texts), max_size=1
    ).map(tuple),
    keys=st.sampled_from(["a", f"{names.PREFIX}x", names.MEMORY_OF_CONTAINER, names.ENV_PREFIX]),
    annotations=_counts,
    lists=st.lists(st.tuples(st.sampled_from(_LISTS), _counts), max_size=3).map(tuple),
)


def decided(asked: dict[str, Any], mode: Mode) -> Rewrite | Unchanged | Refusal:
    return rewrite(asked, mode, {}, FLEET, POLICY)


def seconds(body: bytes, mode: Mode) -> float:
    """Return what deciding takes the processor, beyond reading the JSON."""
    return quiet_seconds(
        lambda read: decided(read, mode), lambda: orjson.loads(body), enough=MOST_SECONDS
    )


def peak(body: bytes, mode: Mode) -> int:
    """Return how many bytes deciding takes at most."""
    read = orjson.loads(body)  # no two parts of it are one
    tracemalloc.start()
    try:
        decided(read, mode)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@settings(examples(500), phases=[Phase.explicit, Phase.reuse, Phase.generate])  # each may be slow
@given(_hostile, st.sampled_from(tuple(Mode)))
def test_deciding_takes_a_bounded_time(asked: Hostile, mode: Mode) -> None:
    """No pod takes the processor more than 30 ms beyond reading it."""
    assert seconds(asked.body(), mode) < MOST_SECONDS


@examples(30)
@given(_hostile, st.sampled_from(tuple(Mode)))
def test_deciding_takes_bounded_memory(asked: Hostile, mode: Mode) -> None:
    """No pod takes more than 64 MiB, whatever it says."""
    assert peak(asked.body(), mode) < MOST_BYTES


@pytest.mark.parametrize("mode", tuple(Mode))
def test_what_is_decided_is_no_matter_of_time(mode: Mode) -> None:
    """The same pod is read as far each time."""
    script = "sh -c \"$A\"''\n" * 300
    env = [{"name": "A", "value": "vllm serve m\n" * 300}]
    item = container("main", **{names.NVIDIA_GPU: "1"})
    asked = pod(item | {"command": ["sh", "-c", script], "env": env}, annotations={})

    assert 1 == len({repr(decided(copy.deepcopy(asked), mode)) for _ in range(5)})


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
