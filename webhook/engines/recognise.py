"""
PURE. Which of the known programs a container runs, by what it starts, and by the image's name where
nothing else stands; and where among its words a flag can be put in, so that it reaches the server
and a flag of the user's behind it still wins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from webhook.engines import catalog
from webhook.engines.levers import has_flag
from webhook.engines.programs import StartKind, is_entry_point
from webhook.engines.tools import TOOLS, of_transformers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.engines.argv import Arg, Place
    from webhook.engines.catalog import Engine, Image
    from webhook.engines.programs import StartedProgram, StartedPrograms

_E = catalog

_BY_PROGRAM: Mapping[str, tuple[Engine, tuple[str, ...]]] = {
    "vllm": (_E.VLLM, ("serve", "run-batch", "bench throughput", "bench latency", "bench startup")),
    "vllm-omni": (_E.VLLM, ("serve",)),
    "aphrodite": (_E.VLLM, ("run", "serve")),
    "trl": (_E.VLLM, ("vllm-serve",)),
    "sglang": (_E.SGLANG, ("serve",)),
    "text-generation-launcher": (_E.TGI, ()),
    "lorax-launcher": (_E.TGI, ()),
    "text-generation-server": (_E.TGI, ("serve",)),
    "trtllm-serve": (_E.TENSORRT_LLM, ()),
    "tritonserver": (_E.TRITON, ()),
    "tensorflow_model_server": (_E.TF_SERVING, ()),
    "tf_serving_entrypoint.sh": (_E.TF_SERVING, ()),
    "ollama": (_E.OLLAMA, ("serve", "start", "runner")),
    "llama-server": (_E.LLAMA_CPP, ()),
    "llama-cli": (_E.LLAMA_CPP, ()),
    "llama-run": (_E.LLAMA_CPP, ()),
    "llama-box": (_E.LLAMA_CPP, ()),
    "rpc-server": (_E.LLAMA_CPP_PYTHON, ()),
    "local-ai": (_E.LLAMA_CPP_PYTHON, ()),
    "tabby": (_E.LLAMA_CPP_PYTHON, ("serve",)),
    "tabby-cuda": (_E.LLAMA_CPP_PYTHON, ("serve",)),
    "lmdeploy": (_E.LMDEPLOY, ("serve api_server", "serve gradio", "chat")),
    "comfy": (_E.COMFYUI, ("launch",)),
    "comfyui": (_E.COMFYUI, ()),
    "dask-cuda-worker": (_E.DASK_CUDA, ()),
    "dask": (_E.DASK_CUDA, ("cuda worker",)),
    **dict.fromkeys(
        ("spark-submit", "spark-shell", "spark-sql", "pyspark", "spark-class"), (_E.SPARK, ())
    ),
    "spark-executor": (_E.SPARK_EXECUTOR, ()),
    **dict.fromkeys(
        ("xinference-local", "xinference-worker", "xinference-supervisor"), (_E.XINFERENCE, ())
    ),
    "text-embeddings-router": (_E.TEI, ()),
    "ray": (_E.RAY, ("start",)),
    "raylet": (_E.RAY, ()),
    "sshd": (_E.SSHD, ()),
    "service": (_E.SSHD, ("ssh start", "sshd start", "ssh restart", "sshd restart")),
    "systemctl": (_E.SSHD, ("start ssh", "start sshd")),
}
"""StartedPrograms by name, with the verbs with which they are servers; none for any."""

_MODULES = (
    (re.compile(r"vllm|vllm\.entrypoints\.cli(?:\.main)?"), "vllm"),
    (re.compile(r"vllm\.entrypoints\..+|dynamo\.vllm(?:\.main)?|vllm_tgis_adapter"), _E.VLLM),
    (re.compile(r"huggingfaceserver(?:\..+)?"), _E.VLLM),
    (re.compile(r"fastchat\.serve\.vllm_worker|aphrodite\.endpoints\..+"), _E.VLLM),
    (re.compile(r"sglang\.launch_server|sglang\.srt\.(?:entrypoints\..+|server)"), _E.SGLANG),
    (re.compile(r"dynamo\.sglang(?:\.(?:main|.*worker))?"), _E.SGLANG),
    (re.compile(r"sglang\.bench_(?:one_batch|offline_throughput|latency).*"), _E.SGLANG),
    (re.compile(r"fastchat\.serve\.sglang_worker"), _E.SGLANG),
    (re.compile(r"tensorrt_llm\.commands\.serve"), "trtllm-serve"),
    (re.compile(r"dynamo\.trtllm(?:\..+)?"), _E.DYNAMO_TENSORRT_LLM),
    (re.compile(r"text_generation_server\.cli|text_generation_server"), "text-generation-server"),
    (re.compile(r"llama_cpp\.server"), _E.LLAMA_CPP_PYTHON),
    (re.compile(r"sglang\.multimodal_gen.*"), _E.SGLANG_DIFFUSION),
    (re.compile(r"fastdeploy\..+"), _E.FASTDEPLOY),
    (re.compile(r"lmdeploy(?:\.cli(?:\.entrypoint)?)?"), "lmdeploy"),
    (re.compile(r"dask_cuda\.cli(?:\.dask_cuda_worker)?"), _E.DASK_CUDA),
    (re.compile(r"xinference\.deploy\..+"), _E.XINFERENCE),
    (re.compile(r"ray\.scripts(?:\.scripts)?"), "ray"),
)  # fmt: skip
"""Modules, with the engine, or the program that they are the same as."""

_SCRIPTS = (
    (re.compile(r"(?:.*/)?vllm/inference_api\.py"), _E.VLLM),  # KAITO's
    (re.compile(r"(?>.*?vllm/entrypoints/).+\.py"), _E.VLLM),
    (re.compile(r"(?>.*?sglang/(?:srt/|launch_server)).*\.py"), _E.SGLANG),
    (re.compile(r".*launch_triton_server\.py"), _E.TENSORRT_LLM_ELSEWHERE),
    (re.compile(r"(?:.*/)?(?:multi-node-serving|ray_init|run_cluster)\.sh"), _E.RAY),
    (re.compile(r"(?i)(?>.*?comfyui).*/main\.py"), _E.COMFYUI),
    (re.compile(r"/etc/(?:rc\.d/)?init\.d/sshd?"), _E.SSHD),
)
_BY_FLAG = (
    ("--gpu-memory-utilization", _E.VLLM),
    ("--mem-fraction-static", _E.SGLANG),
    ("--kv-cache-free-gpu-memory-fraction", _E.TENSORRT_LLM),
    ("--cuda-memory-fraction", _E.TGI),
    ("--per-process-gpu-memory-fraction", _E.TF_SERVING),
    ("--cache-max-entry-count", _E.LMDEPLOY),
    ("--rmm-maximum-pool-size", _E.DASK_CUDA),
    ("--rmm-pool-size", _E.DASK_CUDA),
    ("--reserve-vram", _E.COMFYUI),
)
_VERBLESS = 2
_NO_CACHE = re.compile(r"disaggregated|mm_")
_MODEL = re.compile(r"(?!.*\.(?:sh|py)$|.*/s?bin/)(?:\$\(.*\)|\$\{?\w+\}?|[\w.-]*(?:/[\w.@-]+)+/?)")
_DIFFUSION = re.compile(
    r"diffusion|flux|sdxl|(?:^|/)wan[-_0-9]|qwen-image|hunyuan-?(?:video|image)|z-image|ltx"
    r"|cogvideo|pixart|model-type=diffusion"
)
_SPARK_ROLES = {"driver": _E.SPARK, "executor": _E.SPARK_EXECUTOR}


class Recognised(NamedTuple):
    """
    What runs: a known engine with the program that is it, or none; `args` are those it gets.
    `others` are more programs of that engine, with theirs. `seen` is False where only the user's
    word says that the program is one.
    """

    engine: Engine | None
    program: StartedProgram | None = None
    args: tuple[Arg, ...] = ()
    others: tuple[Recognised, ...] = ()
    seen: bool = True


def is_known(name: str) -> bool:
    """Return whether a program's name is one of those looked for."""
    return name in _BY_PROGRAM


def verbs_of(name: str) -> tuple[str, ...]:
    """Return the words without which a program is no server; none for any."""
    return _BY_PROGRAM[name][1] if name in _BY_PROGRAM else ()


def recognise(
    programs: StartedPrograms, image: Image, *, bare: bool, silent: bool, line: str
) -> Recognised:
    """
    Recognise what a container runs; `bare` where it has no command of its own, `silent` where it
    has no arguments either. `line` is all of its text, by which a script may betray what it starts.
    """
    found = [
        Recognised(
            engine,
            program,
            program.words if _of_image(program, bare=bare) else program.args,
        )
        for program in programs.found
        if (engine := _engine(program, image, bare=bare, line=line)) is not None
    ]
    for each in (*filter(_is_server, found), *found):
        others = [item for item in found if item is not each and item.engine is each.engine]
        return each._replace(others=tuple(others))
    return Recognised(image.engine if silent and image.published else None)


def _of_image(program: StartedProgram, *, bare: bool) -> bool:
    """Return whether the container's words are arguments for the program that its image starts."""
    plain = program.kind is StartKind.PROGRAM and not program.by_shell
    return bare and plain and not is_known(program.name)


def _is_server(found: Recognised) -> bool:
    return found.engine not in (_E.RAY, _E.SSHD)


def _engine(program: StartedProgram, image: Image, *, bare: bool, line: str) -> Engine | None:
    """Return the engine that a program is; None for any other."""
    engine = _by_name(program)
    if engine is None and program.kind is StartKind.PROGRAM:
        engine = _by_place(program, image, bare=bare)
    if engine is None and program.name == "main.py" and "comfy" in line.lower():
        engine = _E.COMFYUI
    if engine is None and program.name not in TOOLS and program.kind is not StartKind.CODE:
        words = program.words if program.path.startswith("-") else program.args
        engine = next((item for flag, item in _BY_FLAG if has_flag(flag, words)), None)
    return _as_image(engine, program, image)


def _by_name(program: StartedProgram) -> Engine | None:
    name, path = program.name, program.path
    if program.kind is StartKind.MODULE:
        same = next((item for pattern, item in _MODULES if pattern.fullmatch(path)), None)
        if not isinstance(same, str):
            return same
        name = same
    scripted = next((item for pattern, item in _SCRIPTS if pattern.fullmatch(path)), None)
    if scripted is not None:
        return scripted
    if name not in _BY_PROGRAM or program.kind is StartKind.CODE:
        return None
    engine, verbs = _BY_PROGRAM[name]
    first = [arg.text for arg in program.args[:_VERBLESS]]
    said = " ".join(first)
    served = not verbs or any(f"{said} ".startswith(f"{verb} ") for verb in verbs)
    return engine if served else None


def _by_place(program: StartedProgram, image: Image, *, bare: bool) -> Engine | None:
    """
    Recognise by the image what only means something in it: its own entry point's words, and
    programs whose names others have as well.
    """
    engine, name = image.engine, program.name
    first = program.args[0].text if program.args else ""
    role = first if name == "entrypoint.sh" else name if engine is _E.SPARK and bare else ""
    if role in _SPARK_ROLES:
        return _SPARK_ROLES[role]
    if engine is None or name in TOOLS or name in _BY_PROGRAM:
        return None
    if engine.name == "ray" and name == "serve" and first in ("run", "start", "deploy"):
        return _E.RAY
    named = (engine.name == "llama-cpp" and name in ("server", "llama", "main", "tools.sh")) or (
        engine.name == "nim" and name.startswith("start")
    )
    handed = image.published and is_entry_point(name) and first.startswith("--")
    given = bare and not program.by_shell and image.published and _for_server(program, engine)
    return engine if named or handed or given else None


def _for_server(program: StartedProgram, engine: Engine) -> bool:
    """
    Return whether a container's words are such as a server's image hands to that: options, one of
    its verbs, or a model.
    """
    text = program.path
    if text.startswith("-") or engine.lever is None or not engine.lever.appends:
        return True
    known = (verbs for each, verbs in _BY_PROGRAM.values() if each.name == engine.name)
    if any(text == verb.partition(" ")[0] for verbs in known for verb in verbs):
        return True
    return _MODEL.fullmatch(text) is not None


def _as_image(engine: Engine | None, program: StartedProgram, image: Image) -> Engine | None:
    """Return an engine as the image's version of it is."""
    if engine is None:
        return None
    if engine is _E.VLLM and of_transformers(program):
        return None
    if engine is _E.TRITON and _speaks_of_tensorrt_llm(program):
        return _E.TENSORRT_LLM_ELSEWHERE
    if engine is _E.TENSORRT_LLM and program.args[:1] and _NO_CACHE.match(program.args[0].text):
        return _E.TENSORRT_LLM_ELSEWHERE
    if engine is _E.SGLANG and any(_DIFFUSION.search(arg.text.lower()) for arg in program.args):
        return _E.SGLANG_DIFFUSION
    same = image.engine is not None and image.engine.name == engine.name
    if engine in (_E.VLLM, _E.TRITON, _E.OLLAMA, _E.NIM) and same:
        return image.engine
    if engine is _E.TRITON and image.engine is _E.TENSORRT_LLM_ELSEWHERE:
        return image.engine
    return engine


def _speaks_of_tensorrt_llm(program: StartedProgram) -> bool:
    return any("tensorrtllm" in arg.text or "tensorrt_llm" in arg.text for arg in program.args)


_LONGEST_SHOWN = 80
_MODEL_FIRST = frozenset(("serve", "run"))
"""Verbs behind which the model stands, if it stands there: vLLM and SGLang take the first word."""

_AFTER_DASHES = frozenset(("comfy",))
"""Programs that hand on only what stands behind two dashes."""


class Edit(NamedTuple):
    """
    What to do about an argument: `place` is where one is replaced, or put in where it is empty;
    None where it is appended.
    """

    text: str
    place: Place | None = None


def behind_head(program: StartedProgram) -> Place | None:
    """Return where a flag can be put in right behind the words by which a program is known."""
    words, count = program.words, _head(program)
    return _tail(words, count - 1) if 0 < count <= len(words) else None


def behind_all(program: StartedProgram) -> Place | None:
    """Return where a flag can be put in behind all words, as the last, which is what counts."""
    words = program.words
    last = words[-1]
    if len(words) < 2 or not last.exact or (last.text.startswith("-") and "=" not in last.text):  # noqa: PLR2004 - a name and a word
        return None
    return last.tail


def known_by(program: StartedProgram) -> str:
    """Return the words behind which a flag belongs, as people know them."""
    words = [word.text for word in program.words[: max(_head(program), 1)]]
    head = ["-m", *words] if program.kind is StartKind.MODULE else words
    return " ".join(head)[:_LONGEST_SHOWN]


def takes_flags(program: StartedProgram) -> bool:
    """Return whether a flag that is appended to a program's arguments is one of its server's."""
    return program.name not in _AFTER_DASHES or any(arg.text == "--" for arg in program.args)


def _head(program: StartedProgram) -> int:
    """Return how many of a program's words come before its flags; zero where that is unclear."""
    words = [word.text for word in program.words]
    if program.name in _AFTER_DASHES:
        return words.index("--") + 1 if "--" in words else 0
    name = program.name.partition(".")[0] if program.kind is StartKind.MODULE else program.name
    if "tensorrt_llm" in program.name or name == "trtllm-serve":
        count = 2 if words[1:2] == ["serve"] else 1
        return count + 1 if _is_model(words, count) else 0
    plain = program.kind is StartKind.PROGRAM or program.name in ("vllm", "lmdeploy")
    plain = plain or program.name.endswith((".cli", ".cli.main", ".cli.entrypoint"))
    said = " ".join(words[1:3])
    verbs = verbs_of(name) if plain else ()
    verb = next((each for each in verbs if f"{said} ".startswith(f"{each} ")), "")
    count = 1 + len(verb.split())
    return count + 1 if verb in _MODEL_FIRST and _is_model(words, count) else count


def _is_model(words: Sequence[str], at: int) -> bool:
    return at < len(words) and not words[at].startswith("-")


def _tail(words: Sequence[Arg], at: int) -> Place | None:
    """
    Return the place behind a word; where that is one of several that a variable brings, behind the
    last of those, unless that is an option which waits for its value.
    """
    while at + 1 < len(words) and words[at].tail is None and words[at].place is None:
        at += 1
    word = words[at]
    return None if word.text.startswith("-") and "=" not in word.text else word.tail
