"""The asking side of `nvml_child` and `cuda_child`, processes that use the simulated driver."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from simulator.cuda.build import environment as cuda_environment
from simulator.nvml.build import CURRENT, LIMITED, environment
from simulator.nvml.groups import ROOT

ANSWER_SECONDS = 60.0
END_SECONDS = 5.0


class NoAnswerError(Exception):
    """Raised when the client says nothing in time, or ends."""


class Client:
    """A process that uses pynvml. Calling it evaluates an expression there."""

    def __init__(
        self,
        state: Path,
        variant: str = CURRENT,
        *,
        init: bool = True,
        prefix: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        seen = environment(state, variant)
        self.process = start_child("nvml_child", {**seen, **(variables or {})}, prefix)
        if init:
            self("nvmlInit()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, expression: str) -> Any:
        """Evaluate an expression that must succeed."""
        answer = self.ask(expression)
        if "error" in answer:
            raise AssertionError(f"{expression}: {answer['error']}: {answer['text']}")
        return answer["value"]

    def error(self, expression: str) -> str:
        """Evaluate an expression that must fail and name the exception's class."""
        answer = self.ask(expression)
        if "error" not in answer:
            raise AssertionError(f"{expression}: answered {answer['value']}")
        return str(answer["error"])

    def ask(self, expression: str, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Evaluate an expression and return the whole answer."""
        self.send(expression)
        return self.receive(seconds)

    def send(self, expression: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def receive(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise NoAnswerError(f"no answer within {seconds} s, exit code {self.process.poll()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close_input(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def complaints(self) -> str:
        """Return what the process wrote to stderr; call close_input first."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def close(self) -> None:
        """Let the process end and wait for it; one that hangs is killed."""
        self.close_input()
        assert self.process.stdout is not None
        self.process.stdout.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(END_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()


def set_limit(state: Path, group: Path, hard: int, *, card: int = 0, soft: int = 0) -> None:
    """Limit a control group on a card as root does, in a process of its own."""
    with Client(state, LIMITED, variables={ROOT: "1"}) as root:
        root(f"limit({card}, {str(group)!r}, {hard}, {soft})")


def start_child(
    module: str, variables: Mapping[str, str], prefix: Sequence[str] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", f"tests.support.{module}"],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


CUDA = 13


class CudaProgram(Client):
    """A program of the driver. Calling it evaluates an expression with `cuda_child`'s names."""

    def __init__(
        self,
        state: Path,
        *,
        cuda: int = CUDA,
        device: int | None = 0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        seen = cuda_environment(state, cuda=cuda)
        self.process = start_child("cuda_child", {**seen, **(variables or {})})
        if device is not None:
            assert [0, 0] == [self("init()"), self(f"use({device})")]
