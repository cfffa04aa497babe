"""
PURE. The programs that gpufence knows: what each reads about memory, how its images are called, and
the words by which the texts of a container betray that one may run there.

A new server is its name in gpufence/names.py, its settings in levers.py, a row here, and what it is
started by in recognise.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from webhook.engines import levers
from webhook.frameworks.figures import Basis
from webhook.frameworks.table import FixedRow, FrameworkRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.engines.launch import Budget
    from webhook.engines.levers import Lever

Version = tuple[int, int, int]


class Engine(NamedTuple):
    """
    A program that is known by name.

    `rows` are variables of its own, `common` those of the table that it reads, None where whatever
    runs within it may read any. A `planner` keeps to a plan of its own: a cap of PyTorch's below it
    could do nothing, or kill it. `hard` means that it keeps to what it is told, `hooked` that the
    start-up hook finds PyTorch in it. `void` are flags and variables of its own that make what it
    is told useless, `word` is what everybody who runs it should know. With `after_weights` its flag
    is a part of what those leave free. What `gives_back` memory that it has allocated is told how
    far its pod may burst, any other server no more than the request.
    """

    name: str
    lever: Lever | None = None
    rows: tuple[FrameworkRow | FixedRow, ...] = ()
    common: frozenset[str] | None = frozenset()
    planner: bool = False
    hard: bool = False
    hooked: bool = False
    void: tuple[str, ...] = ()
    word: str = ""
    after_weights: bool = False
    gives_back: bool = False

    @property
    def basis(self) -> Basis:
        """What it may allocate is reckoned from."""
        if self.lever is not None and self.lever.row.basis is Basis.SERVER:
            return Basis.SERVER
        return Basis.SHARE if self.planner else Basis.PLAIN

    def heeds(self, env: str) -> bool:
        """Return whether a variable of the common table is any use here."""
        return self.common is None or env in self.common


_GRAPHS = FixedRow(names.VLLM_GRAPHS, "1", without="leaves CUDA graphs out of what vLLM counts")
_TORCH = frozenset((names.PYTORCH_CONF,))
_TENSORFLOW = frozenset((names.TF_GROWTH,))

VLLM = Engine(
    "vllm",
    levers.VLLM,
    (_GRAPHS,),
    planner=True,
    hard=True,
    hooked=True,
    void=("--kv-cache-memory-bytes",),
)
VLLM_BEFORE_0_20 = VLLM._replace(lever=levers.VLLM_BEFORE_0_20)
VLLM_BEFORE_0_9_1 = VLLM_BEFORE_0_20._replace(
    word="before 0.9.1 it counts what neighbours hold as its own, and finds no room beside them"
)
SGLANG = Engine(
    "sglang",
    levers.SGLANG,
    planner=True,
    hooked=True,
    word="its flag is a part of what is free at start, so that it gets less beside neighbours",
)
VLLM_IN_DJL = VLLM._replace(lever=levers.DJL, rows=(levers.DJL.row, _GRAPHS))
VLLM_AT_RUNPOD = VLLM._replace(lever=levers.RUNPOD, rows=(levers.RUNPOD.row, _GRAPHS))
SGLANG_DIFFUSION = Engine("sglang", planner=True)  # knows no such flag
FASTDEPLOY = Engine("fastdeploy")  # plans with the card through PaddlePaddle
TGI = Engine("tgi", levers.TGI, (levers.TGI.row,), hard=True)
TENSORRT_LLM = Engine(
    "tensorrt-llm",
    levers.TENSORRT_LLM,
    after_weights=True,
)
DYNAMO_TENSORRT_LLM = Engine(
    "tensorrt-llm",
    levers.DYNAMO_TENSORRT_LLM,
    (levers.DYNAMO_TENSORRT_LLM.row,),
    after_weights=True,
)
TENSORRT_LLM_ELSEWHERE = Engine("tensorrt-llm")  # told in files of its own, as within Triton
TRITON = Engine("triton", common=_TORCH)
TRITON_BEFORE_25_03 = Engine("triton", levers.TRITON_TENSORFLOW, common=_TORCH | _TENSORFLOW)
TF_SERVING = Engine("tf-serving", levers.TF_SERVING, common=_TENSORFLOW, hard=True)
NIM = Engine("nim")
NIM_1 = Engine("nim", rows=(levers.NIM_CACHE,))
NIM_2 = Engine("nim", levers.VLLM._replace(appends=False), (levers.NIM_ARGS,), hard=True)
NIM_2_SGLANG = Engine("nim", levers.SGLANG._replace(appends=False), (levers.NIM_SGLANG_ARGS,))
OLLAMA = Engine("ollama", rows=(levers.OLLAMA_OVERHEAD, levers.LLAMA_FIT))
OLLAMA_BEFORE_0_30 = Engine("ollama", rows=(levers.OLLAMA_OVERHEAD,))
OLLAMA_FROM_0_30 = Engine("ollama", rows=(levers.LLAMA_FIT,))
OLLAMA_BEFORE_0_3_10 = Engine("ollama")
LLAMA_CPP = Engine(
    "llama-cpp",
    levers.LLAMA,
    (levers.LLAMA_FIT,),
    void=(
        *("-ngl", "--n-gpu-layers", "--gpu-layers", names.LLAMA_LAYERS),
        *("-fit", "--fit", names.LLAMA_FITS),
    ),
)
LLAMA_CPP_PYTHON = Engine("llama-cpp")
LMDEPLOY = Engine(
    "lmdeploy",
    levers.LMDEPLOY,
    after_weights=True,
)
COMFYUI = Engine("comfyui", levers.COMFYUI, hooked=True, gives_back=True)
COMFYUI_BY_VARIABLE = COMFYUI._replace(rows=(levers.COMFYUI_ARGS,))
DASK_CUDA = Engine("dask-cuda", levers.DASK_CUDA)
SPARK = Engine("spark", levers.SPARK)
SPARK_EXECUTOR = Engine("spark")
XINFERENCE = Engine("xinference")
TEI = Engine("tei")
RAY = Engine(
    "ray",
    common=None,
    hooked=True,
    gives_back=True,
)
RAY_LLM = RAY._replace(gives_back=False)  # with vLLM in its image
SSHD = Engine("sshd", gives_back=True)

BY_NAME: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        *(VLLM, SGLANG, TGI, TENSORRT_LLM, TRITON, TF_SERVING, NIM, OLLAMA, LLAMA_CPP, LMDEPLOY),
        *(COMFYUI, DASK_CUDA, SPARK, XINFERENCE, TEI, RAY, SSHD, FASTDEPLOY),
    )
}

VARIABLES = frozenset(
    {
        *(names.ENV_SERVER, names.ENV_SERVER_MEMORY, names.VLLM_GRAPHS, names.VLLM_ARGS),
        *(names.TGI_FRACTION, names.NIM_ARGS, names.NIM_CACHE, names.DYNAMO_FRACTION),
        *(names.OLLAMA_OVERHEAD, names.LLAMA_FIT, names.COMFYUI_ARGS),
        *(names.DJL_FRACTION, names.RUNPOD_FRACTION),
    }
)
"""What any of them may be told by."""

_IMAGES = re.compile(
    r"(?P<nim>(?:^|/)nim/)"
    r"|(?P<tei>text-embeddings(?:-inference|-router)|/tei(?:-gaudi)?$)"
    r"|(?P<tgi>text-generation-inference|/tgi$|(?:^|/)lorax$)"
    r"|(?P<fastdeploy>fastdeploy)"
    r"|(?P<sglang>sglang)"
    r"|(?P<tensorrt_llm>tensorrt[-_]?llm|trt-?llm)"
    r"|(?P<triton>tritonserver)"
    r"|(?P<tf_serving>tensorflow/serving|tensorflow-serving|tf-?serving)"
    r"|(?P<xinference>xinference)"
    r"|(?P<vllm>vllm|huggingfaceserver)"
    r"|(?P<ollama>(?:^|/)ollama(?:$|/ollama))"
    r"|(?P<llama_cpp>llama[.-]?cpp|local-?ai(?:$|/)|tabbyml/tabby)"
    r"|(?P<lmdeploy>lmdeploy)"
    r"|(?P<comfyui>comfy-?ui)"
    r"|(?P<ray>rayproject/ray|(?:^|/)ray(?:-ml|-llm)?$)"
    r"|(?P<spark>(?:^|/)spark(?:-py|-rapids|-operator/spark)?$)"
)
_VERSION = re.compile(r"[vr]?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,6}))?(?![0-9])")
_SETS_LAYERS = re.compile(r"local-?ai|tabby")
_NO_LANGUAGE_MODEL = re.compile(r"embed|rerank|riva|parakeet|canary|maxine|ocr|yolox|fold|diff")


_LONGEST_IMAGE = 1024
"""Of a name that can be pulled; a registry takes no more than half of that."""


_PUBLISHED = re.compile(
    r"(?:^|[-_.])(?:vllm|sglang|tgi|text-generation-inference|text-embeddings-[a-z]+|tei|lorax"
    r"|tensorrt[-_]?llm|trt-?llm|tritonserver|(?:tensorflow-|tf-?)?serving|xinference|tabby"
    r"|huggingfaceserver|ollama|llama[.-]?cpp|local-?ai|lmdeploy|comfy-?ui|ray|spark|fastdeploy)"
    r"(?:$|[-_.])"
)
_OTHER_ROLE = re.compile(
    r"(?:^|[-_.])(?:router|sidecar|sim|simulator|mock|bench|benchmark|operator|playground|stack"
    r"|dashboard|exporter|client|manager|proxy|gateway|epp|scheduler|controller|web-?ui|ui|cli|eval"
    r"|test|frontend|downloader|loader|helper|agent|monitor|metrics|bentoml)(?:$|[-_.])"
)


class Image(NamedTuple):
    """
    An image's name as far as it tells anything: the engine that it is of, and its version.
    `published` marks one that is called like what a server's makers give out, which starts it.
    """

    engine: Engine | None
    version: Version | None
    published: bool = False


def read_image(image: str) -> Image:
    """Read an image's name; its registry and digest say nothing."""
    name = image.partition("@")[0].lower()
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    found = _IMAGES.search(f"{head}{slash}{last}") if len(name) <= _LONGEST_IMAGE else None
    if found is None or found.lastgroup is None:
        return Image(None, None)
    number = _VERSION.match(tag)
    version = (int(number[1]), int(number[2]), int(number[3] or 0)) if number else None
    engine = BY_NAME[found.lastgroup.replace("_", "-")]
    if engine is TRITON and ("trtllm" in tag or "trt-llm" in tag):
        engine = TENSORRT_LLM_ELSEWHERE
    if engine is NIM and _NO_LANGUAGE_MODEL.search(last):
        version = None
    if engine is RAY and last == "ray-llm":
        engine = RAY_LLM
    if engine is VLLM and last != "vllm" and not last.startswith("vllm-openai"):
        version = None  # of whatever is around it
    if engine is LLAMA_CPP and _SETS_LAYERS.search(found[0]):
        engine = LLAMA_CPP_PYTHON
    published = found.lastgroup == "nim" or (
        _PUBLISHED.search(last) is not None and _OTHER_ROLE.search(last) is None
    )
    return Image(_of_version(engine, version, sglang="sglang" in tag), version, published)


def _of_version(engine: Engine, version: Version | None, *, sglang: bool) -> Engine:
    """Return an engine as its version is; as is safe for all where that is not known."""
    if version is None:
        return engine
    if engine is TRITON:
        return TRITON_BEFORE_25_03 if (19, 0, 0) < version < (25, 3, 0) else TRITON
    if engine is NIM and version < (2, 0, 0):
        return NIM_1 if version >= (1, 0, 0) else NIM
    if engine is NIM:
        return NIM_2_SGLANG if sglang else NIM_2
    if engine is VLLM and version < (0, 20, 0):
        return VLLM_BEFORE_0_9_1 if (0, 8, 0) <= version < (0, 9, 1) else VLLM_BEFORE_0_20
    if engine is OLLAMA and version < (0, 3, 10):
        return OLLAMA_BEFORE_0_3_10
    if engine is OLLAMA:
        return OLLAMA_BEFORE_0_30 if version < (0, 30, 0) else OLLAMA_FROM_0_30
    return engine


def by_first(*patterns: str) -> re.Pattern[str]:
    """Find any of some patterns, each of which begins with a letter of its own: fast that way."""
    rests: dict[str, list[str]] = {}
    for pattern in patterns:
        rests.setdefault(pattern[0], []).append(pattern[1:])
    return re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in rests.items()))


def alone(*words: str) -> tuple[str, ...]:
    """Return patterns of words that are part of no longer one."""
    return tuple(f"{word}(?<![a-z]{word})(?![a-z])" for word in words)


_HINTS = (
    *("vllm", "aphrodite", "sglang", "tgi", "text[.-]generation", "text-embeddings", "tensorrt"),
    *("trt-?llm", "triton", "tensorflow_model", "serving", "nim/", "llama", "local-?ai", "tabby"),
    *("lorax", "fastdeploy", "djl", "service ssh", "start ssh", "init\\.d/ssh"),
    *("lmdeploy", "comfy", "dask", "spark", "xinference", "ray(?![a-z])", "tei(?![a-z])", "sshd"),
    *("huggingfaceserver", "inference_api", "gpu[-_]memory[-_]", "mem[-_]fraction"),
    *("cuda[-_]memory", "cache[-_]max[-_]entry", "--rmm", "reserve[-_]vram", "run_cluster"),
    r"entrypoint\.sh (?:driver|executor)",
)
HINT = by_first(*_HINTS)
"""What any program that is known betrays itself by, so that most containers need no closer look."""

_PLANNERS = (
    *("vllm", "sglang", "lmdeploy", "lightllm", "trt-?llm", "tensorrt[-_ ]?llm", "turbomind"),
    *("openrlhf", "nemo[-_]?rl", "openllm", "fast_?deploy", "xinference", "huggingfaceserver"),
    *("aphrodite", "ktransformers", "gpustack", "rtp[-_]llm", "ray-?llm", "deepspeed[-_]mii"),
    *("mlc[-_]llm", "lorax", r"ray[\"')}]* start(?![a-z])"),
    "text[-_.]generation[-_.](?:inference|server|launcher)",
    *alone("verl", "djl", "lmi", "tgi", "nim", "mii", "llm-d", "areal"),
    *("max[-_]model[-_]len", "max[-_]num[-_](?:seqs|batched)", "served[-_]model[-_]name"),
    *("tensor[-_]parallel[-_]size", "enforce[-_]eager", "enable[-_]prefix[-_]cach"),
    *("chunked[-_]prefill", "kv[-_](?:transfer|cache[-_]dtype)", "tool[-_]call[-_]parser"),
    *("disaggregation[-_]mode", "pipeline[-_]parallel[-_]size"),
    *("rolling[-_]?batch", "gpu[-_]mem(?:ory)?[-_]util", "free[-_]gpu[-_]mem"),
    *("cache[-_]max[-_]entry", "mem[-_]frac(?<!client[-_]mem[-_]frac)", "cuda[-_]memory[-_]frac"),
)
PLANNER = by_first(*_PLANNERS)
"""What betrays a server that plans with the card, wherever it stands."""

BETRAYED = by_first(*_HINTS, *_PLANNERS)
"""Either, in all texts of a container at once: most need no closer look."""


_HOST = re.compile(r"(?:https?|grpcs?)://[^/\s\"']*")
_ELSEWHERE = re.compile(
    r"(?:https?|grpcs?)://(?!localhost\b|127\.|0\.0\.0\.0)\S+"
    r"|(?!localhost\b)[A-Za-z][A-Za-z0-9.-]*:[0-9]{2,5}(?:/\S*)?"
)
"""Where a server is that is none of the container's own: what has its address is its client."""


class Mention(NamedTuple):
    """The first word that names a server which plans the card's memory, and where it stands."""

    word: str
    where: str


def mention_of(
    image: str, line: str, name: str, said: Mapping[str, str | None], budget: Budget
) -> Mention | None:
    """Return the first word that names a planner, and where it stands."""
    texts = [("its image", image), ("its command", line), ("its name", name)]
    for env, text in said.items():
        if text is None or not _ELSEWHERE.fullmatch(text):
            texts.append((f"its variable {env}", f"{env}={text or ''}"))
    for where, text in texts:
        budget.read(len(text) + 32)
        found = PLANNER.search(text.lower())
        if found is not None and "://" in text:  # a client's address is no server
            budget.read(len(text))
            found = PLANNER.search(_HOST.sub(" ", text.lower()))
        if found is not None:
            return Mention(found[0], where)
    return None
