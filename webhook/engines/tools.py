"""
PURE. Programs that are no servers: those that start another one, with which of their words are
their own, and those that run in the images of servers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.engines.argv import Arg
    from webhook.engines.programs import StartedProgram

_MODULE = re.compile(r"-[bBdEhiIOPqRsSuvVx]*([cm])(.*)", re.DOTALL)
_LETTERS = re.compile(r"-[a-zA-Z]+")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)


class Wrapper(NamedTuple):
    """
    A program that starts another: which of its options take a value, how many words it reads
    itself, and the verb with which it does so.
    """

    options: frozenset[str] = frozenset()
    own: int = 0
    verb: str = ""


def _wrapper(*options: str, own: int = 0, verb: str = "") -> Wrapper:
    return Wrapper(frozenset(options), own, verb)


_PLAIN = _wrapper()
_RUN = _wrapper(
    *("-n", "-p", "--name", "--prefix", "--cwd", "--project", "--directory", "--with", "--python"),
    *("--extra", "--group", "--env-file", "--package"),
    verb="run",
)
WRAPPERS: Mapping[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "catatonit", "ddtrace-run"), _PLAIN),
    **dict.fromkeys(("unbuffer", "catchsegv", "trtllm-llmapi-launch", "eatmydata"), _PLAIN),
    **dict.fromkeys(("uv", "conda", "mamba", "micromamba", "poetry", "pdm", "pipenv"), _RUN),
    **dict.fromkeys(("pixi", "hatch", "rye"), _RUN),
    **dict.fromkeys(("gosu", "su-exec", "chroot", "setarch", "s6-setuidgid"), _wrapper(own=1)),
    "init": _PLAIN,  # of s6
    "uvx": _wrapper("--from", "--with", "--python", "-p"),
    "xargs": _wrapper("-I", "-n", "-P", "-d", "-L", "-a", "-s", "-E"),
    "exec": _wrapper("-a"),
    "env": _wrapper("-u", "--unset", "-C", "--chdir"),
    "nice": _wrapper("-n", "--adjustment"),
    "ionice": _wrapper("-c", "--class", "-n", "--classdata"),
    "chrt": _wrapper(own=1),
    "taskset": _wrapper(own=1),
    "numactl": _wrapper(
        *("-i", "-N", "-m", "-C", "-p", "-w", "-l", "--interleave", "--cpunodebind", "--membind"),
        *("--physcpubind", "--preferred", "--weighted-interleave"),
    ),
    "tini": _wrapper("-p", "-e"),
    "tini-static": _wrapper("-p", "-e"),
    "docker-init": _wrapper("-p", "-e"),
    "dumb-init": _wrapper("-r", "--rewrite"),
    "sudo": _wrapper("-u", "-g", "-C", "-h", "-p"),
    "runuser": _wrapper("-u", "-g", "-G"),
    "setpriv": _wrapper("--reuid", "--regid", "--groups"),
    "stdbuf": _wrapper("-i", "-o", "-e"),
    "timeout": _wrapper("-k", "--kill-after", "-s", "--signal", own=1),
    "flock": _wrapper("-w", "--timeout", "-E", own=1),
    "prlimit": _wrapper(),
    "strace": _wrapper("-e", "-o", "-p", "-s"),
    "nsys": _wrapper(
        *("-o", "--output", "-t", "--trace", "-w", "-c", "-s", "-f", "-y", "-d"), verb="profile"
    ),
    "opentelemetry-instrument": _wrapper(
        "--traces_exporter", "--metrics_exporter", "--service_name"
    ),
}  # fmt: skip
SEARCHED = frozenset(
    (
        *("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "jsrun"),
        *("horovodrun", "torchrun", "deepspeed", "accelerate", "torchx"),
        *("ncu", "py-spy", "compute-sanitizer", "viztracer", "argoexec"),
    )
)


def without_options(words: Sequence[Arg], wrapper: Wrapper) -> Sequence[Arg] | None:
    """Return what follows a wrapper's own words; None where it starts nothing."""
    at, own = 1, wrapper.own
    if wrapper.verb:
        while at < len(words) and words[at].text != wrapper.verb:
            at += 1
        at += 1
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
            continue
        if text.startswith("-") and text != "-":
            at += 2 if text in wrapper.options else 1
        elif ASSIGNMENT.fullmatch(text):
            at += 1
        elif own:
            at, own = at + 1, own - 1
        else:
            return words[at:]
    return None


def takes_script(text: str) -> bool:
    """Return whether a shell's option says that a script follows."""
    return "c" in text and _LETTERS.fullmatch(text) is not None


def after_shell_options(words: Sequence[Arg]) -> tuple[int, bool]:
    """Return where a shell's options end, and whether a script follows them."""
    at, told = 1, False
    while at < len(words) and words[at].text[:1] in ("-", "+"):
        text = words[at].text
        at += 1
        if text in ("--", "-"):
            break
        told = told or takes_script(text)
        if text.endswith("o") and not text.startswith("--"):
            at += 1  # -o takes the name of an option
    return at, told


def after_python_options(words: Sequence[Arg]) -> tuple[int, str, str]:
    """
    Return where an interpreter's options end, and the letter of the last where that is `-c` or
    `-m`, with what is joined to it.
    """
    at = 1
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        text = words[at].text
        at += 2 if text in ("-W", "-X") else 1
        found = _MODULE.fullmatch(text)
        if found is not None:
            return at, found[1], found[2]
    return at, "", ""


def script_of_user(name: str, words: Sequence[Arg]) -> Sequence[Arg] | None:
    """
    Return the text that `eval` runs, or `su` and `runuser` for somebody else; None for another
    program, and where `runuser` is told a program and no text.
    """
    if name == "eval":
        return words[1:]
    if name != "su" and (name != "runuser" or any(word.text == "-u" for word in words[1:4])):
        return None
    told = ("-c", "--command")
    at = next((place for place, word in enumerate(words) if word.text in told), len(words))
    return words[at + 1 : at + 2]


TOOLS = frozenset(
    (
        *("conda", "mamba", "micromamba", "uv", "poetry"),
        *(".", ":", "[", "[[", "aiperf", "all_reduce_perf", "apk", "apt", "apt-get", "aria2c"),
        *("awk", "aws", "az", "basename", "bash-completion", "break", "cat", "cd", "chgrp"),
        *("chmod", "chown", "clear", "continue", "cp", "curl", "cut", "date", "dcgmi", "dd"),
        *("create-model-store", "list-model-profiles", "download-to-cache"),
        *("declare", "deviceQuery", "docker", "df", "dirname", "dmesg", "du", "echo", "exit"),
        *("export", "false", "ffmpeg", "find", "free", "gcloud", "genai-perf", "git", "gpu-burn"),
        *("gpu_burn", "grep", "groups", "gsutil", "guidellm", "gunzip", "gzip", "head", "helm"),
        *("hf", "hostname", "huggingface-cli", "id", "infinity", "install", "ip", "ipcs"),
        *("jobs", "jq", "jupyter", "jupyterhub-singleuser", "kill", "kubectl", "ldconfig"),
        *("llama-bench", "llama-imatrix", "llama-perplexity", "llama-quantize", "lm-eval"),
        *("lm_eval", "ln", "local", "ls", "lsof", "mc", "mkdir", "mkfifo", "modelscope"),
        *("mount", "mv", "nc", "nccl-tests", "netstat", "ngc", "nginx", "nohup", "nproc"),
        *("nvbandwidth", "nvcc", "nvidia-smi", "nvtop", "paste", "pause", "perf_analyzer"),
        *("ping", "podman", "pip", "pip3", "pkill", "popd", "printenv", "printf", "ps", "pushd"),
        *("pwd", "read", "readlink", "realpath", "return", "rm", "rmdir", "rsync", "s3cmd"),
        *("s5cmd", "sed", "seq", "set", "shift", "sleep", "sort", "source", "ssh", "stat", "stty"),
        *(
            "sync",
            "sysctl",
            "tail",
            "tar",
            "tee",
            "tensorboard",
            "test",
            "top",
            "touch",
            "tr",
            "trap",
        ),
        *("trtexec", "trtllm-bench", "trtllm-build", "trtllm-eval", "trtllm-prune"),
        *("trtllm-refit", "true", "tty", "type", "ulimit", "umask", "umount", "unalias"),
        *("uname", "uniq", "unset", "until", "unzip", "useradd", "wait", "watch", "wc", "wget"),
        *("which", "whoami", "xargs", "xinference", "yes", "zip"),
    )
)


_ENCODES = re.compile(
    r"__tensor_input_names(?:=|$)|__task=(?:fill_mask|token_classification|sequence_classification)"
)


def of_transformers(program: StartedProgram) -> bool:
    """Return whether KServe's server leaves vLLM out: told so, or for a model that only encodes."""
    texts = [arg.text for arg in program.words]
    pairs = list(zip(texts, [*texts[1:], ""], strict=True))
    if "--backend=huggingface" in texts or ("--backend", "huggingface") in pairs:
        return True
    return any(_ENCODES.match(f"{one}={other}".replace("-", "_")) for one, other in pairs)
