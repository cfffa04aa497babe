"""
PURE. Inference servers that plan the card's memory by themselves, and the flags that tell them.

A cap in the framework below them that they do not know of makes them die at start: vLLM takes nine
tenths of the card unless told otherwise, and then cannot allocate it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.errors import shown
from webhook.frameworks.figures import Basis
from webhook.frameworks.table import fraction_row, read_fraction

if TYPE_CHECKING:
    from fractions import Fraction

    from webhook.frameworks.table import FrameworkRow


class InferenceServer(StrEnum):
    """
    The servers gpufence knows, by what `gpufence.io/framework` calls them.
    """

    VLLM = "vllm"
    SGLANG = "sglang"
    TF_SERVING = "tf-serving"
    TRITON = "triton"


class ServerFlag(NamedTuple):
    """
    A server's own memory flag.

    `row` says what it may be set to. `greedy` servers take most of the card without it; `torch`
    ones allocate through PyTorch, whose cap they do not know of. `bare` images pass arguments on
    without having any of their own.
    """

    text: str
    pattern: re.Pattern[str]
    row: FrameworkRow
    greedy: bool = True
    torch: bool = False
    bare: bool = False


def _flag(text: str, basis: Basis, **kind: bool) -> ServerFlag:
    loose = re.escape(text).replace("_", "-").replace(r"\-", "-").replace("-", "[-_]")
    joint = "" if text.endswith("=") else r"[= ]\s*"
    pattern = re.compile(rf"(?:^|\s){loose}{joint}['\"]?([^\s'\"]+)")
    return ServerFlag(text, pattern, fraction_row(names.ENV_SERVER, basis), **kind)


FLAGS = {
    InferenceServer.VLLM: _flag("--gpu-memory-utilization", Basis.SHARE, torch=True),
    # The static part only: activations and CUDA graphs come on top of it.
    InferenceServer.SGLANG: _flag("--mem-fraction-static", Basis.PLAIN, torch=True),
    InferenceServer.TF_SERVING: _flag(
        "--per_process_gpu_memory_fraction", Basis.TENSORFLOW, bare=True
    ),
    InferenceServer.TRITON: _flag(
        "--backend-config=tensorflow,gpu-memory-fraction=", Basis.TENSORFLOW, greedy=False
    ),
}
NO_SERVER = ("none", "pytorch", "tensorflow", "jax", "cupy", "paddle", "julia")
"""Other values of `gpufence.io/framework`: nothing here plans by itself."""

_BY_NAME = {server.value: server for server in InferenceServer}
_COMMANDS = re.compile(
    r"(?:^|[\s/'\"])(?:(?P<vllm>vllm\s+serve|vllm\.entrypoints)|(?P<sglang>sglang\.launch_server"
    r"|sglang\s+serve)|(?P<tf_serving>tensorflow_model_server|tf_serving_entrypoint\.sh)"
    r"|(?P<triton>tritonserver))(?![\w-])"
)
_IMAGES = re.compile(
    r"(?P<vllm>vllm)|(?P<sglang>sglang)|(?P<tf_serving>tensorflow/serving|tensorflow-serving"
    r"|tf-?serving)|(?P<triton>tritonserver)"
)
_SHELLS = re.compile(r"(?:^|\s)(?:\S*/)?(?:ba|da|a|z|k)?sh\s+(?:-\w+\s+)*-\w*c(?:\s|$)")
_OURS = re.compile(r"\$[({]?GPUFENCE_\w+[)}]?")


class ServerLaunch(NamedTuple):
    """
    How a container starts its server.

    `value` is the flag's value as the user wrote it. `obstacle` says why no argument can be
    appended, where none can.
    """

    server: InferenceServer
    value: str | None
    obstacle: str = ""

    @property
    def flag(self) -> ServerFlag:
        return FLAGS[self.server]

    @property
    def argument(self) -> str:
        """
        Return the argument of ours, which the kubelet expands when it starts the container.
        """
        joint = "" if self.flag.text.endswith("=") else "="
        return f"{self.flag.text}{joint}$({names.ENV_SERVER})"

    @property
    def told_by_us(self) -> bool:
        """
        Return whether the flag's value is a variable of ours, and so right on every card.
        """
        return self.value is not None and _OURS.fullmatch(self.value) is not None

    def within(self, share: Fraction) -> bool:
        """
        Return whether the server is told to stay within its share.
        """
        if self.value is None:
            return not self.flag.greedy
        asked = read_fraction(self.value)
        return self.told_by_us or (asked is not None and 0 < asked <= share)

    def unaware(self, share: str, *, args: bool) -> str:
        """
        Return the sentence for a server that does not know its share: how it can learn of it.
        """
        flag = self.flag.text.rstrip("=")
        start = f"{flag} {shown(self.value)}" if self.value else f"{self.server} without {flag}"
        joint = "=" if self.flag.text.endswith("=") else " "
        if not args:
            remedy = f"write {flag}{joint}{share} or set {names.ARGS}"
        else:
            remedy = f"{self.obstacle}: write {flag}{joint}$({names.ENV_SERVER}) there"
        return f"{start} takes more than the share {share}; {remedy}"


def read_launch(
    image: str, command: tuple[str, ...], args: tuple[str, ...], framework: str = ""
) -> ServerLaunch | None:
    """
    Recognise a server by the user's word, by what is started, or by the image; None for any other.
    """
    if framework in NO_SERVER:
        return None
    line = " ".join((*command, *args))
    server = _BY_NAME.get(framework) or _recognised(line, image)
    if server is None:
        return None
    values = FLAGS[server].pattern.findall(line)
    return ServerLaunch(
        server, values[-1] if values else None, _obstacle(server, command, args, line)
    )


def _recognised(line: str, image: str) -> InferenceServer | None:
    match = _COMMANDS.search(line) or _IMAGES.search(image)
    return InferenceServer[match.lastgroup.upper()] if match and match.lastgroup else None


def without_ours(args: tuple[str, ...]) -> tuple[str, ...]:
    """
    Leave out the argument that an earlier pass has appended, to see what that pass saw.
    """
    return tuple(item for item in args if item not in _ARGUMENTS)


_ARGUMENTS = frozenset(ServerLaunch(server, None).argument for server in InferenceServer)


def _obstacle(
    server: InferenceServer, command: tuple[str, ...], args: tuple[str, ...], line: str
) -> str:
    if _SHELLS.search(line) or args[:1] == ("-c",):
        return "a shell starts the server"
    if not command and not args and not FLAGS[server].bare:
        return "its arguments stand in the image"
    return ""
