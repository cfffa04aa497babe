"""
PURE. How a container starts a server that plans the card's memory by itself, and how that server
can be told its share.

A cap in the framework below it that it does not know of makes it die at start: vLLM takes nine
tenths of the card unless told otherwise, and then cannot allocate it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.errors import shown
from webhook.frameworks import engines
from webhook.frameworks.argv import read_items
from webhook.frameworks.engines import BY_NAME, VARIABLES, read_image
from webhook.frameworks.flags import has_flag, overriding, told, unseen
from webhook.frameworks.levers import VLLM_ARGS
from webhook.frameworks.programs import read_programs
from webhook.frameworks.recognise import Recognised, is_known, possible_planner, recognise
from webhook.frameworks.shell import LONGEST_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from webhook.frameworks.argv import Place
    from webhook.frameworks.engines import Engine, Image
    from webhook.frameworks.flags import Told
    from webhook.frameworks.levers import Lever
    from webhook.frameworks.programs import StartedPrograms

_HINT = re.compile(
    r"vllm|aphrodite|sglang|tgi|text[.-]generation|text-embeddings|tensorrt|trt-?llm|triton|tensorflow_model"
    r"|serving|nim/|ollama|llama|local-?ai|tabby|lmdeploy|comfy|dask|spark|xinference"
    r"|ray(?![a-z])|tei(?![a-z])|sshd|huggingfaceserver|inference_api|gpu[-_]memory[-_]"
    r"|mem[-_]fraction|cuda[-_]memory|cache[-_]max[-_]entry|--rmm|reserve[-_]vram|multi-node-serving"
    r"|ray_init|run_cluster|entrypoint\.sh (?:driver|executor)"
)
"""What any program that is known betrays itself by, so that most containers need no closer look."""

_OURS = re.compile(
    rf"\$(?:\((?P<kubelet>{names.SETTING_PREFIX}\w+|{names.TGI_FRACTION}|{names.DYNAMO_FRACTION}"
    rf"|{names.LLAMA_FIT})\)|\{{?(?P<shell>{names.SETTING_PREFIX}\w+)\}}?)"
)
_REFERRED = re.compile(rf"{names.SETTING_PREFIX}\w+")
_MOST_ITEMS = 2048
_TOO_LONG = "its command is too long to be looked into"
LONGEST_START = 2 * LONGEST_SCRIPT
"""A longer command with its arguments is not looked into."""


class Edit(NamedTuple):
    """
    What to do about an argument: `place` is where one is replaced, None where it is appended.
    """

    text: str
    place: Place | None = None


class ServerLaunch(NamedTuple):
    """
    A known program that a container runs, and how it is told about memory.

    `flag` is its own memory flag as the user wrote it. `obstacle` says why none can be appended,
    where none can; `shell` marks where that is a shell. `possible` is set where it is not certain
    that the engine is started at all. `refers` are variables of ours that the container's texts
    name, `void` is a flag of the user's that takes the effect from what the server is told, and
    `unseen` what may hold the flag where nobody can look. `others` are more servers of that kind
    which are started beside it.
    """

    engine: Engine | None
    flag: Told | None = None
    obstacle: str = ""
    shell: bool = False
    possible: Engine | None = None
    refers: frozenset[str] = frozenset()
    void: str = ""
    unseen: str = ""
    others: tuple[ServerLaunch, ...] = ()

    @property
    def carried(self) -> bool:
        """
        Return whether a variable hands our flag to the server.
        """
        rows = self.engine.rows if self.engine is not None else ()
        return any(row.form == "arguments" for row in rows)

    @property
    def told_by_us(self) -> bool:
        """Return whether the flag's value is a variable of ours, and so right on every card."""
        return self.flag is not None and _is_ours(self.flag.text, shell=self.shell)

    def within(self, lever: Lever, share: Fraction, card_bytes: int | None) -> bool:
        """Return whether the server is told to stay within its share, or does so by itself."""
        if self.void:
            return False
        if self.told_by_us:
            return True
        if self.flag is None:
            return lever.default is None or lever.default <= share
        asked = lever.row.read(self.flag.text, card_bytes)
        return asked is not None and 0 < asked <= share

    def edit(self, lever: Lever) -> Edit | None:
        """Return how the server can be told by an argument; None where it cannot."""
        if self.void:
            return None
        if self.flag is not None:
            if self.flag.place is None:
                return None
            return Edit(f"$({lever.row.env})", self.flag.place)
        return Edit(lever.argument) if lever.appends and not self.obstacle else None

    def unaware(self, engine: Engine, lever: Lever, share: str, *, args: bool) -> str:
        """
        Return the sentence for a server that does not know its share: how it can learn of it.
        """
        if self.void:
            return f"{self.void} takes the effect from {lever.shown}; remove it"
        flag = self.flag.text if self.flag is not None else ""
        start = f"{lever.shown} {shown(flag)}" if flag else f"{engine.name} without {lever.shown}"
        unless = (
            f" unless {shown(self.unseen)} brings it unseen" if self.unseen and not flag else ""
        )
        if args or (self.shell and not flag):
            why = "it cannot be changed where it stands" if flag else self.obstacle
            remedy = f"{why}: write {lever.written(f'$({lever.row.env})')} there"
        else:
            remedy = f"write {lever.written(share)} or set {names.ARGS}"
        return f"{start} takes more than the share {share}{unless}; {remedy}"


def withheld(engine: str) -> str:
    return (
        f"{engine} may be started here, and a cap of PyTorch's that it does not know of would kill "
        f"it, so that one is withheld; {names.FRAMEWORK} says what runs"
    )


def several(engine: str, count: int) -> str:
    return (
        f"{engine} is started {count} times; where they run together, {names.PROCESSES_PER_CARD} "
        "divides the share between them"
    )


def by_ssh(share: str) -> str:
    return (
        "ranks that come by ssh get none of the pod's variables; hand them on where they are "
        f"started: mpirun -x {names.PYTORCH_CONF}=per_process_memory_fraction:{share} "
        f"-x {names.XLA_FRACTION}={share}"
    )


def _is_ours(text: str, *, shell: bool) -> bool:
    match = _OURS.fullmatch(text)
    return match is not None and (shell or match["shell"] is None)


def read_launch(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    framework: str,
    variables: Callable[[], Mapping[str, str]],
    longest: int = LONGEST_START,
) -> ServerLaunch | None:
    """
    Recognise what a container runs: by the user's word, by what is started, or by the image; None
    for any program that is not known. `variables` gives those whose text can be read; a text beyond
    the `longest` is not looked into.
    """
    if framework in names.FRAMEWORKS:
        return None
    line = " ".join((image, *command, *args))
    wanted = BY_NAME.get(framework)
    if wanted is None:
        # KServe's templates start vLLM in containers that say nothing themselves.
        silent = not command and not args
        known: Mapping[str, str] = variables() if "$" in line or silent else {}
        texts = [line, *known.values()] if known and not silent else [line]
        if not any(_HINT.search(text.lower()) for text in texts) and not (
            silent and names.VLLM_ARGS in known
        ):
            return None
    else:
        known = variables()
    if len(line) > longest or len(command) + len(args) > _MOST_ITEMS:
        possible = None if wanted is not None else possible_planner(read_image(image), line)
        if wanted is None and possible is None:
            return None
        return ServerLaunch(wanted, obstacle=_TOO_LONG, possible=possible)
    return _launch(image, command, args, wanted, variables(), line)


def _launch(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    wanted: Engine | None,
    variables: Mapping[str, str],
    line: str,
) -> ServerLaunch | None:
    picture = read_image(image)
    bare, silent = not command, not command and not args
    readable = {key: text for key, text in variables.items() if key not in VARIABLES}
    items = read_items(command, args, readable)
    programs = read_programs(items, readable, is_known)
    found = recognise(programs, picture, bare=bare, silent=silent, line=line)
    if wanted is not None:
        found = _by_word(wanted, found, programs, picture)
    engine = _carrying(found.engine, line, variables, silent=silent)
    if engine is None:
        return ServerLaunch(None, possible=found.possible) if found.possible else None
    text = " ".join((line, *variables.values())) if variables else line
    refers = frozenset(_REFERRED.findall(text))
    launch, *others = (
        _started(engine, each, variables, silent=silent)._replace(refers=refers)
        for each in (found, *found.others)
    )
    return launch._replace(others=tuple(others))


def _started(
    engine: Engine, found: Recognised, variables: Mapping[str, str], *, silent: bool
) -> ServerLaunch:
    lever, program = engine.lever, found.program
    return ServerLaunch(
        engine,
        flag=told(lever, found.args) if lever is not None else None,
        obstacle=_obstacle(engine, found, silent=silent),
        shell=program is not None and program.by_shell and not program.reached,
        possible=found.possible,
        void=overriding(engine.void, found.args, variables),
        unseen=unseen(lever, found.args) if lever is not None else "",
    )


def _by_word(
    wanted: Engine, found: Recognised, programs: StartedPrograms, image: Image
) -> Recognised:
    """Take the user's word for what runs, and what is seen of it for how it is started."""
    if found.engine is not None and found.engine.name == wanted.name:
        return found
    engine = wanted
    if image.engine is not None and image.engine.name == wanted.name:
        engine = image.engine
    started = [item for item in programs.found if engine.lever and told(engine.lever, item.words)]
    program = next(iter((*started, *reversed(programs.found))), None)
    words = program.words if program is not None else ()
    return Recognised(engine, program, words)


def _carrying(
    engine: Engine | None, line: str, variables: Mapping[str, str], *, silent: bool
) -> Engine | None:
    """
    Add the variable by which KServe's templates hand arguments to vLLM, where one is read: by the
    command, or by the one that such a template puts into a container without any.
    """
    if silent and names.VLLM_ARGS in variables and engine in (None, engines.VLLM):
        return engines.VLLM._replace(rows=(*engines.VLLM.rows, VLLM_ARGS))
    if engine is not None and engine.lever is engines.VLLM.lever and names.VLLM_ARGS in line:
        return engine._replace(rows=(*engine.rows, VLLM_ARGS))
    return engine


def _obstacle(engine: Engine, found: Recognised, *, silent: bool) -> str:
    """Return why an argument that is appended would not reach the server; empty where it would."""
    lever, program = engine.lever, found.program
    if lever is None:
        return ""
    if program is None:
        return "" if lever.bare and silent else "its arguments stand in the image"
    if program.by_shell and not program.reached:
        return "a shell starts the server"
    if lever.beside and not has_flag(lever.beside, found.args):
        return f"it takes {lever.flags[0]} only beside {lever.beside}"
    return ""
