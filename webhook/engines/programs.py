"""
PURE. Which programs a container starts: its command and arguments without all that is wrapped
around them, and where in them each argument of a program stands.

What starts another program is taken off (shells, `exec`, `env`, `tini`, `numactl`, `mpirun`, ...)
until one is left that does not. All of it takes its steps from a budget: a command is a tenant's
text.
"""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from webhook.engines.argv import Arg, Assignments, from_shell
from webhook.engines.shell import read_script
from webhook.engines.tools import (
    ASSIGNMENT,
    SEARCHED,
    WRAPPERS,
    after_python_options,
    after_shell_options,
    script_of_user,
    takes_script,
    without_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.engines.launch import Budget
    from webhook.engines.shell import Word

_DEEPEST = 16  # shells within shells: what Python's own stack bears many times over
_LONGEST_NAME = 255  # of a file, as the kernel has it
_A_PROGRAM = 32  # steps that it takes to recognise one, beside those for its words

_SHELL = re.compile(r"(?:ba|da|a|z|k|mk|tc|c)?sh|busybox")
_PYTHON = re.compile(r"python[0-9.]*(?:-[a-z]+)?|pypy[0-9.]*")
_ENTRY_POINT = re.compile(r"entry-?_?point|\Awith-contenv\Z|\Ahostpid", re.IGNORECASE)
_RESERVED = frozenset(
    ("then", "else", "do", "if", "while", "until", "elif", "!", "{", "}", "time", "function")
)
_BRACES = {"{": 1, "}": -1}
_BLOCKS = {
    **dict.fromkeys(("if", "case", "for", "while", "until", "select"), 1),
    **dict.fromkeys(("fi", "esac", "done"), -1),
}
_HEADS = frozenset(("for", "case", "select", "in", "esac", "fi", "done"))
_SET_BY_OTHERS = {"KUBERAY_GEN_RAY_START_CMD": "ray start"}

_TORCH_LAUNCHERS = frozenset(
    ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
)


class StartKind(StrEnum):
    """What a program is started as."""

    PROGRAM = "program"
    MODULE = "module"  # python -m
    SCRIPT = "script"  # of Python's, or a shell's
    CODE = "code"  # text on the command line, or fed to an interpreter
    IDLE = "idle"  # a shell or an interpreter that waits for somebody


class StartedProgram(NamedTuple):
    """
    One program: `name` is its file's name, module, script or code, `path` is that as written, the
    first of its `words`.

    `by_shell` marks what a shell starts, and `reached` what gets the arguments that are appended to
    the container's.
    """

    kind: StartKind
    name: str
    path: str
    words: tuple[Arg, ...]
    by_shell: bool = False
    reached: bool = True

    @property
    def args(self) -> tuple[Arg, ...]:
        return self.words[1:]


class StartedPrograms(NamedTuple):
    """What a container starts, in order; `clear` is False where more may be started."""

    found: list[StartedProgram]
    clear: bool


def read_programs(
    items: Sequence[Arg],
    variables: Mapping[str, str],
    known: Callable[[str], bool],
    budget: Budget,
) -> StartedPrograms:
    """
    Take off what starts other programs. `known` tells the names of programs that are looked for
    among the words of those that start others by arguments of their own, such as mpirun.
    """
    reader = _Follower({**_SET_BY_OTHERS, **variables}, known, budget)
    words = list(items)
    bare = bool(words) and words[0].place is not None and words[0].place.field == "args"
    if bare and takes_script(words[0].text):  # the image's entry point is a shell
        words.insert(0, Arg("sh"))
    reader.follow(words, by_shell=False, reached=True, depth=0)
    return StartedPrograms(reader.found, reader.clear)


class _Follower:
    """One look at a container."""

    def __init__(
        self, variables: dict[str, str], known: Callable[[str], bool], budget: Budget
    ) -> None:
        self.variables = variables
        self.known = known
        self.budget = budget
        self.found: list[StartedProgram] = []
        self.clear = True
        self.held: Assignments | None = None  # of the script that is being read

    def follow(self, words: Sequence[Arg], *, by_shell: bool, reached: bool, depth: int) -> None:
        """Find the program that a list of words starts in the end."""
        while words:
            at = 0
            while at < len(words) and ASSIGNMENT.fullmatch(words[at].text):
                at += 1
            self.budget.spend(at)
            self.budget.read(len(words))
            words = words[at:]
            if not words:
                return
            name = _name(words[0].text)
            if _SHELL.fullmatch(name):
                self._shell(words, by_shell=by_shell, reached=reached, depth=depth)
                return
            text = script_of_user(name, words)
            if text is not None:
                here = self.held if name == "eval" else None
                self._scripts(text, (), reached=reached, depth=depth, around=here)
                return
            if _PYTHON.fullmatch(name):
                inner = self._python(words, by_shell=by_shell, reached=reached)
            else:
                inner = self._inner(name, words)
                if inner is None:
                    self._add(StartKind.PROGRAM, words, by_shell=by_shell, reached=reached)
            if inner is None:
                return
            words = inner

    def _inner(self, name: str, words: Sequence[Arg]) -> Sequence[Arg] | None:
        """Return the words of the program that a wrapper starts; None where it is no wrapper."""
        self.budget.spend(1)
        if self.known(name):
            return None
        wrapper = WRAPPERS.get(name)
        if name == "env" and words[2:] and words[1].text in ("-S", "--split-string"):
            words = [words[0], *self._split(words[2]), *words[3:]]
        if wrapper is not None:
            inner = without_options(words, wrapper)
            self.budget.spend(len(words) - len(inner or ()))
            return inner
        if name in SEARCHED:
            return self._searched(words[1:])
        if is_entry_point(name) and len(words) > 1:
            text = words[1].text
            if self._starts(text) or text.startswith("/"):
                return words[1:]
        return None

    def _split(self, text: Arg) -> list[Arg]:
        """Return the words of a text that `env` takes apart."""
        script = read_script(text.text if text.inner is None else text.written, self.budget)
        self.clear = self.clear and script.clear
        words = script.commands[0] if script.commands else []
        return from_shell(words, text, self.variables, {}, self.budget)

    def _searched(self, words: Sequence[Arg]) -> Sequence[Arg] | None:
        for at, word in enumerate(words):
            self.budget.read(len(word.text))
            if word.text == "-m" and at + 1 < len(words) and "." in words[at + 1].text:
                return [Arg("python"), *words[at:]]
            if word.text.endswith(".py"):
                return [Arg("python"), *words[at:]]
            if self._starts(word.text):
                return words[at:]
        return None

    def _starts(self, text: str) -> bool:
        name = _name(text)
        return (
            self.known(name)
            or name in WRAPPERS
            or name in SEARCHED
            or _SHELL.fullmatch(name) is not None
            or _PYTHON.fullmatch(name) is not None
        )

    def _python(
        self, words: Sequence[Arg], *, by_shell: bool, reached: bool
    ) -> Sequence[Arg] | None:
        """Note what an interpreter runs; return the words after it where that is a launcher."""
        at, letter, joined = after_python_options(words)
        self.budget.spend(at)
        rest = [Arg(joined), *words[at:]] if joined else words[at:]
        if letter == "m" and rest:
            if rest[0].text in _TORCH_LAUNCHERS:
                return self._searched(rest[1:]) or rest[1:]
            self._add(StartKind.MODULE, rest, by_shell=by_shell, reached=reached)
            return None
        if letter == "c":
            self._add(StartKind.CODE, rest, by_shell=by_shell, reached=reached)
            return None
        kind = StartKind.SCRIPT if at < len(words) else StartKind.IDLE
        self._add(kind, words[at:] or words[:1], by_shell=by_shell, reached=reached)
        return None

    def _shell(self, words: Sequence[Arg], *, by_shell: bool, reached: bool, depth: int) -> None:
        """Follow what a shell is told to run."""
        at, told = after_shell_options(words)
        self.budget.spend(at)
        if told and at < len(words):
            self._scripts(words[at : at + 1], words[at + 1 :], reached=reached, depth=depth)
        elif (
            depth < _DEEPEST
            and at < len(words)
            and (inner := self._inner(_name(words[at].text), words[at:]))
        ):
            self.follow(inner, by_shell=by_shell, reached=reached, depth=depth + 1)
        else:
            kind = StartKind.SCRIPT if at < len(words) else StartKind.IDLE
            self._add(kind, words[at:] or words[:1], by_shell=by_shell, reached=reached)

    def _scripts(
        self,
        texts: Sequence[Arg],
        given: Sequence[Arg],
        *,
        reached: bool,
        depth: int,
        around: Assignments | None = None,
    ) -> None:
        """
        Follow every command of a script; `given` are the words that it sees as $0, $1 and so on,
        `around` is the script that has put it together.
        """
        if depth >= _DEEPEST or not texts:
            self.clear = self.clear and not texts
            return
        self.budget.read(sum([len(each.text) for each in texts]))
        source = texts[0] if len(texts) == 1 else Arg(" ".join([each.text for each in texts]))
        script = read_script(source.text if source.inner is None else source.written, self.budget)
        self.clear = self.clear and script.clear
        outer = self.held
        held = Assignments(source, self.variables, given, self.budget, around)
        alone = around is not None and len(script.commands) == 1  # gets whatever ends the text
        braces = blocks = 0
        for at, words in enumerate(script.commands):
            blocks += _opened(words)
            args = held.args(words, branch=blocks > 0 or at in script.chained)
            while args and args[0].text in _RESERVED:
                self.budget.read(len(args))
                braces += _BRACES.get(args[0].text, 0)
                args = args[2:] if args[0].text == "function" else args[1:]
            if not args or args[0].text in _HEADS or held.assigned(args):
                continue
            # Functions have arguments of their own.
            handed_on = braces == 0 and (alone or held.hands_on(words, args))
            held.give(args, handed_on=handed_on)
            before = len(self.found)
            self.budget.spend(1)
            self.held = held
            self.follow(args, by_shell=True, reached=reached and handed_on, depth=depth + 1)
            if at in script.fed:
                for place in range(before, len(self.found)):
                    if self.found[place].kind in (StartKind.IDLE, StartKind.SCRIPT):
                        self.found[place] = self.found[place]._replace(kind=StartKind.CODE, name="")
        self.held = outer

    def _add(self, kind: StartKind, words: Sequence[Arg], *, by_shell: bool, reached: bool) -> None:
        path = words[0].text if words else ""
        self.budget.read(len(path))
        self.budget.spend(_A_PROGRAM + 2 * len(words))
        name = path if kind in (StartKind.MODULE, StartKind.CODE) else _name(path)
        self.found.append(StartedProgram(kind, name, path, tuple(words), by_shell, reached))


def _opened(words: Sequence[Word]) -> int:
    """Return how many blocks of a script a command opens, less those that it closes."""
    heads = takewhile(lambda word: word.text in _BLOCKS or word.text in _RESERVED, words)
    return sum(_BLOCKS.get(word.text, 0) for word in heads)


def is_entry_point(name: str) -> bool:
    """Return whether a file is called like what images hand their arguments on by."""
    return len(name) <= _LONGEST_NAME and _ENTRY_POINT.search(name) is not None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
