"""
PURE. What the owner of a pod reads about the servers in it: how much may be used, what holds the
pod to it, what to write, and what happens otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.errors import shown
from gpufence.quantity import GIB, MIB, write_mebibytes

if TYPE_CHECKING:
    from webhook.engines.catalog import Engine, Mention
    from webhook.engines.launch import ServerLaunch
    from webhook.engines.levers import Lever
    from webhook.frameworks.figures import CardFigures

LEAST_MODEL = 2 * GIB
"""Below this no language model fits beside CUDA's own memory."""

_CALLED = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tgi": "TGI",
    "tensorrt-llm": "TensorRT-LLM",
    "triton": "Triton",
    "tf-serving": "TensorFlow Serving",
    "nim": "NIM",
    "ollama": "Ollama",
    "llama-cpp": "llama.cpp",
    "lmdeploy": "LMDeploy",
    "comfyui": "ComfyUI",
    "ray": "Ray",
}
_MODEL_SERVERS = frozenset(("vllm", "sglang", "tgi", "tensorrt-llm", "nim", "lmdeploy"))
EVICTION = "until then only eviction holds it"
DRIVEN = "until then only the driver holds it"
_ASK = f"set {names.ARGS}: enabled"

NO_ARGUMENT = f"{names.ARGS}: no card's size is known yet, so that no flag is set"
NO_SERVER = (
    f"{names.ARGS}: no server with a memory flag is seen to start here; say what runs by "
    f"{names.FRAMEWORK}, one of {', '.join(names.ENGINES)}"
)
ACTORS = (
    "Ray: actors that share a card may use all of the limit each; write how many share one as "
    f"{names.PROCESSES_PER_CARD}"
)


def called(engine: Engine) -> str:
    """Return a program's name as its owner writes it."""
    return _CALLED.get(engine.name, engine.name)


def limit_of(figures: CardFigures) -> str:
    """Say how much may be used, of how much."""
    limit = write_mebibytes(figures.limit_bytes)
    whole = figures.card_bytes
    if whole is None or figures.driver:
        return limit
    return f"{limit} of {write_mebibytes(whole)}"


def _until(figures: CardFigures) -> str:
    """Say what holds a program that does not know its limit."""
    return DRIVEN if figures.driver else EVICTION


def may_use(figures: CardFigures) -> str:
    return f"this pod may use {limit_of(figures)}"


def unaware(
    launch: ServerLaunch, engine: Engine, lever: Lever, figures: CardFigures, *, args: bool
) -> str:
    """Return the sentence for a server that does not know its limit: how it can learn of it."""
    if launch.overridden:
        return _outranked(launch, engine, lever, figures)
    if launch.void:
        return _in_vain(launch, engine, lever, figures)
    value = f"$({lever.row.env})" if lever.appends else lever.row.write(figures)
    if launch.flag is not None:
        return _too_much(launch, lever, figures, value, args=args)
    start = f"{called(engine)} takes {_default(lever)} of the card by itself; {may_use(figures)}"
    unless = f", unless {shown(launch.unseen)} says less" if launch.unseen else ""
    remedy = f"Write {_where(launch)}{lever.written(value)}"
    if args or launch.edit(lever) is None:
        why = launch.obstacle or "nothing can be put in there"
        until = _until(figures)
        end = f"{until}, and mode evict refuses it" if launch.refused(lever) else until
        return f"{start}{unless}. {remedy} (gpufence cannot: {why}); {end}"
    return f"{start}{unless}. {remedy}, or {_ASK}; {_until(figures)}"


def is_too_small(engine: Engine, figures: CardFigures) -> bool:
    """Return whether a server of language models gets less than any of them takes."""
    return engine.name in _MODEL_SERVERS and figures.limit_bytes < LEAST_MODEL


def too_small_for_models(engine: Engine, figures: CardFigures) -> str:
    return (
        f"{called(engine)}: {limit_of(figures)} leave no room for a model, since CUDA itself takes "
        f"{write_mebibytes(figures.reserve_bytes)}; ask for {write_mebibytes(LEAST_MODEL)} or more"
    )


def after_weights(engine: Engine, lever: Lever, figures: CardFigures) -> str:
    """Return how much of a card a server takes whose flag is a part of what its weights leave."""
    limit, whole = figures.limit_bytes - figures.reserve_bytes, figures.card_bytes or 1
    most = (limit - figures.allowance_bytes) / (1 - Fraction(figures.allowance_bytes, whole))
    return (
        f"{called(engine)}: {lever.flags[0]} is a part of what the weights leave free, and they "
        f"come on top; {figures.fraction} keeps to {limit_of(figures)} with weights of up to "
        f"{max(int(most), 0) // MIB}Mi. For weights of W Mi write ({limit // MIB} - W) / "
        f"({whole // MIB} - W)"
    )


def keeps(engine: Engine | None, request_bytes: int, limit_bytes: int) -> str:
    """Say why a server of a pod that bursts is configured with the request alone."""
    server = "a server that may run here" if engine is None else called(engine)
    return (
        f"{server}: configured with the request of {write_mebibytes(request_bytes)} and not the "
        f"limit of {write_mebibytes(limit_bytes)}, since it never gives back what it has allocated;"
        f" {names.BURST_SERVERS}: enabled configures it with the limit"
    )


def uncapped(mention: Mention, figures: CardFigures | None) -> str:
    """Say why PyTorch gets no cap, though nothing that plans by itself is seen to start."""
    return (
        f'PyTorch gets no cap: "{mention.word}" in {mention.where} says that a server may run that '
        f"plans with the card by itself and dies of one at start{_alone(figures)}. Where PyTorch "
        f"alone runs, write {names.FRAMEWORK}: pytorch"
    )


def unread(container: str) -> str:
    return (
        "command, arguments and variables take more to read than gpufence reads of one pod, so "
        "what runs there is unknown and gets no cap of PyTorch's; move the script into the image "
        f"or a ConfigMap, or name what runs with {names.FRAMEWORK_OF_CONTAINER}{container}"
    )


def any_actors(figures: CardFigures | None) -> str:
    """Say why PyTorch gets no cap where Ray starts what nobody can see."""
    return (
        "Ray: PyTorch gets no cap, since actors are not seen, and a server among them would die of "
        f"one at start{_alone(figures)}. Where PyTorch alone runs, write {names.FRAMEWORK}: pytorch"
    )


def several(engine: Engine, count: int) -> str:
    return (
        f"{called(engine)} is started {count} times, and each may use all of the limit; where they "
        f"run together, write {names.PROCESSES_PER_CARD}: {count}, or they are evicted together"
    )


def left_out(engine: Engine, lever: Lever) -> str:
    return (
        f"{lever.shown} stands in a branch of the script that may not be taken, and then "
        f"{called(engine)} takes {_default(lever)} of the card; write it outside of the branch"
    )


def by_ssh(share: str) -> str:
    return (
        "sshd: what is started by ssh sees none of the pod's variables, and eviction alone holds "
        f"it to the limit; hand them on: mpirun -x {names.PYTORCH_CONF}="
        f"per_process_memory_fraction:{share} -x {names.XLA_FRACTION}={share}"
    )


def _alone(figures: CardFigures | None) -> str:
    if figures is None:
        return ""
    return f"; {may_use(figures)}, and eviction alone holds it to that"


def _too_much(
    launch: ServerLaunch, lever: Lever, figures: CardFigures, value: str, *, args: bool
) -> str:
    said = launch.flag.text if launch.flag is not None else ""
    start = f"{lever.shown} {shown(said)} {_fault(lever, said, figures)}; {may_use(figures)}"
    if args:
        remedy = f"Write {value} there (gpufence cannot: the command is put together)"
    else:
        remedy = f"Write {lever.row.write(figures)} there, or {_ASK}"
    return f"{start}. {remedy}; {_until(figures)}"


def _fault(lever: Lever, said: str, figures: CardFigures) -> str:
    """Say what is wrong with a value."""
    asked = lever.row.read(said, figures.card_bytes)
    if asked:
        return "leaves too little free" if lever.row.left_free else "is too much"
    return "is not known before it runs" if "$" in said else "is no value that can be read"


def _outranked(launch: ServerLaunch, engine: Engine, lever: Lever, figures: CardFigures) -> str:
    over = launch.overridden
    return (
        f"{called(engine)}: {over.written} outranks {lever.shown}, and cannot be read here; "
        f"{may_use(figures)}. Write {over.key}: {lever.row.write(figures)} there; {_until(figures)}"
        if over is not None
        else ""
    )


def _in_vain(launch: ServerLaunch, engine: Engine, lever: Lever, figures: CardFigures) -> str:
    heard = lever.shown if lever.appends else lever.row.env
    return (
        f"{called(engine)} takes what {launch.void} makes it take, whatever its settings; "
        f"{may_use(figures)}. Leave it out, and {heard} counts, or choose it so that all fits; "
        f"{_until(figures)}"
    )


def _where(launch: ServerLaunch) -> str:
    if launch.known_by and launch.seen:
        return f'behind "{launch.known_by}": '
    return "into its args: " if launch.seen else "where it is started: "


def _default(lever: Lever) -> str:
    return "most" if lever.default is None else f"{float(lever.default):g}"
