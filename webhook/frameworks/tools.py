"""PURE. Programs that are no servers, though they run in images of those."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.frameworks.programs import StartedProgram

TOOLS = frozenset(
    (
        *("conda", "mamba", "micromamba", "uv", "poetry"),
        *(".", ":", "[", "[[", "aiperf", "all_reduce_perf", "apk", "apt", "apt-get", "aria2c"),
        *("awk", "aws", "az", "basename", "bash-completion", "break", "cat", "cd", "chgrp"),
        *("chmod", "chown", "clear", "continue", "cp", "curl", "cut", "date", "dcgmi", "dd"),
        *("create-model-store", "list-model-profiles", "download-to-cache"),
        *(
            "declare",
            "deviceQuery",
            "docker",
            "df",
            "dirname",
            "dmesg",
            "du",
            "echo",
            "exit",
            "export",
        ),
        *("false", "ffmpeg", "find", "free", "gcloud", "genai-perf", "git", "gpu-burn"),
        *("gpu_burn", "grep", "groups", "gsutil", "guidellm", "gunzip", "gzip", "head", "helm"),
        *("hf", "hostname", "huggingface-cli", "id", "infinity", "install", "ip", "ipcs"),
        *("jobs", "jq", "jupyter", "jupyterhub-singleuser", "kill", "kubectl", "ldconfig"),
        *("llama-bench", "llama-imatrix", "llama-perplexity", "llama-quantize", "lm-eval"),
        *("lm_eval", "ln", "local", "ls", "lsof", "mc", "mkdir", "mkfifo", "modelscope"),
        *("mount", "mv", "nc", "nccl-tests", "netstat", "ngc", "nginx", "nohup", "nproc"),
        *("nvbandwidth", "nvcc", "nvidia-smi", "nvtop", "paste", "pause", "perf_analyzer"),
        *(
            "ping",
            "podman",
            "pip",
            "pip3",
            "pkill",
            "popd",
            "printenv",
            "printf",
            "ps",
            "pushd",
            "pwd",
        ),
        *("read", "readlink", "realpath", "return", "rm", "rmdir", "rsync", "s3cmd", "s5cmd"),
        *("sed", "seq", "set", "shift", "sleep", "sort", "source", "ssh", "stat", "stty", "sync"),
        *("sysctl", "tail", "tar", "tee", "tensorboard", "test", "top", "touch", "tr", "trap"),
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
