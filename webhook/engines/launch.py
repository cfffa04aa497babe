"""
PURE. How a container starts a server that plans the card's memory by itself, and how that server
can be told its share.

A cap in the framework below it that it does not know of makes it die at start: vLLM takes nine
tenths of the card unless told otherwise, and then cannot allocate it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from webhook.engines import catalog
from webhook.engines.argv import read_items
from webhook.engines.catalog import (
    BETRAYED,
    BY_NAME,
    HINT,
    PLANNER,
    VARIABLES,
    Mention,
    mention_of,
    read_image,
)
from webhook.engines.levers import VLLM_ARGS, has_flag, outranking, overriding, told, unseen
from webhook.engines.programs import read_programs
from webhook.engines.recognise import (
    Edit,
    Recognised,
    behind_all,
    behind_head,
    is_known,
    known_by,
    recognise,
    takes_flags,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from webhook.engines.argv import Place
    from webhook.engines.catalog import Engine, Image
    from webhook.engines.levers import Lever, Overriding, Told
    from webhook.engines.programs import StartedPrograms


STEPS = 8_192
"""
What reading the commands, arguments and variables of one pod may take, whatever they say: a
microsecond each, or little more; what real manifests start takes a few hundred.
"""

_CHARACTERS = 32  # that are looked at, or put together, in one step


class SpentError(Exception):
    """Raised for a pod that takes more to read than any is worth: the rest of it stays unread."""


@dataclass(slots=True)
class Budget:
    """
    So many steps; once they are used up, each further one raises `SpentError`.

    Steps and no clock: a pod is read alike on every machine, however busy that is. All readers of
    all containers draw from the same budget, since a text can make another one, and that a third.
    """

    left: int = STEPS

    def spend(self, steps: int) -> None:
        """Take steps: one for each word, match or name that is about to be looked at."""
        self.left -= steps
        if self.left < 0:
            raise SpentError

    def read(self, characters: int) -> None:
        """Take the steps of a text that is about to be read, or made."""
        self.left -= 1 + characters // _CHARACTERS
        if self.left < 0:
            raise SpentError


Variables: TypeAlias = "Mapping[str, str | None]"
"""A container's variables as the user wrote them; None is unseen."""


_OURS = re.compile(
    rf"\$(?:\((?P<kubelet>{names.SETTING_PREFIX}\w+|{names.TGI_FRACTION}|{names.DYNAMO_FRACTION}"
    rf"|{names.LLAMA_FIT})\)|\{{?(?P<shell>{names.SETTING_PREFIX}\w+)\}}?)"
)
_A_VARIABLE = 32  # characters that it takes to read one, beside its own
_A_FLAG = 96
"""
Steps that it takes to read a flag of ours in every text around it: spent before it is put in, so
that a pod which was read once is read in each later pass.
"""
_REFERRED = re.compile(rf"{names.SETTING_PREFIX}\w+")


_IN_DJL = re.compile(r"lmi|vllm")
_RUNPOD = re.compile(r"runpod/|worker[-_a-z0-9]*vllm")
_BACKENDS = (
    (re.compile(r"torch|pyt(?![a-z])"), names.PYTORCH_CONF),
    (re.compile(r"tensorflow|tf2?(?![a-z])"), names.TF_GROWTH),
)
"""What betrays a backend of Triton's, and the variable that it reads."""


UNREAD = Mention("", "")
"""The evidence where there is more to read than a pod has: anything may run."""


class ServerLaunch(NamedTuple):
    """
    A known program that a container runs, and how it is told about memory.

    `flag` is its own memory flag as the user wrote it. `obstacle` says why none can be appended,
    where none can; `shell` marks where that is a shell, `head` and `end` are places in its script
    where one can be put in; `known_by` are the words behind which that is,
    `seen` whether more than the user's word says so. `evidence` is why
    PyTorch's cap would be a danger though nothing that plans memory is seen to start. `refers` are
    variables of ours that the container's texts name, `void` is a setting of the user's by which
    the server takes what it takes, whatever it is told, `overridden` is a file that has the last
    word, and `unseen` what may hold the flag where nobody can look. `others` are more servers of
    that kind which are started beside it, `deaf` are variables that nothing is seen to read.
    """

    engine: Engine | None
    flag: Told | None = None
    obstacle: str = ""
    shell: bool = False
    head: Place | None = None
    end: Place | None = None
    known_by: str = ""
    seen: bool = True
    evidence: Mention | None = None
    refers: frozenset[str] = frozenset()
    void: str = ""
    overridden: Overriding | None = None
    unseen: str = ""
    others: tuple[ServerLaunch, ...] = ()
    deaf: frozenset[str] = frozenset()

    @property
    def pytorch(self) -> bool:
        """Return whether PyTorch's own cap can do no harm: nothing here plans with the card."""
        common = self.engine.common if self.engine is not None else None
        return self.evidence is None and common is not None and names.PYTORCH_CONF in common

    @property
    def carriers(self) -> tuple[str, ...]:
        """Return the variables that can hand our flag to the server."""
        rows = self.engine.rows if self.engine is not None else ()
        return tuple([row.env for row in rows if row.form == "arguments"])

    @property
    def told_by_us(self) -> bool:
        """Return whether the flag's value is a variable of ours, and so right on every card."""
        return self.flag is not None and _is_ours(self.flag.text, shell=self.shell)

    def within(self, lever: Lever, share: Fraction, card_bytes: int | None) -> bool:
        """Return whether the server is told to stay within its share, or does so by itself."""
        if self.void or self.overridden:
            return False
        if self.told_by_us:
            return True
        if self.flag is None:
            return lever.default is None or lever.default <= share
        asked = lever.row.read(self.flag.text, card_bytes)
        return asked is not None and 0 < asked <= share

    def refused(self, lever: Lever) -> bool:
        """Return whether nobody but its owner can tell the server, as far as can be seen."""
        seen = not (self.unseen or self.void or self.overridden)
        return seen and self.shell and self.flag is None and self.edit(lever) is None

    def edit(self, lever: Lever) -> Edit | None:
        """Return how the server can be told by an argument; None where it cannot."""
        if self.void or self.overridden:
            return None
        if self.flag is not None and self.flag.place is not None:
            return Edit(f"$({lever.row.env})", self.flag.place)
        if not lever.appends or (self.flag is not None and lever.keeps_first):
            return None
        if not self.obstacle:
            return Edit(lever.argument)
        place = self.head if self.flag is None else self.end
        return None if place is None else Edit(f" {lever.argument}", place)


def _is_ours(text: str, *, shell: bool) -> bool:
    match = _OURS.fullmatch(text)
    return match is not None and (shell or match["shell"] is None)


def read_launch(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    framework: str,
    said: Variables,
    budget: Budget,
    name: str = "",
) -> ServerLaunch | None:
    """
    Recognise what a container of a name runs: by the user's word, by what is started, or by the
    image; None for any program that is not known. `said` are its variables. All is read at the
    expense of the pod's budget.
    """
    if framework in names.FRAMEWORKS:
        return None
    wanted = BY_NAME.get(framework)
    line = " ".join((image, *command, *args))
    whole = "\n".join((line, name, *said, *filter(None, said.values())))
    try:
        budget.read(len(whole) + _A_VARIABLE * len(said))
        if wanted is None and BETRAYED.search(whole.lower()) is None:
            return None  # as nearly always
        launch = _seen(image, command, args, line, wanted, said, budget)
        if wanted is None and (launch is None or launch.pytorch) and PLANNER.search(whole.lower()):
            mention = mention_of(image, " ".join((*command, *args)), name, said, budget)
            if mention is not None:
                return (launch or ServerLaunch(None))._replace(evidence=mention)
    except SpentError:
        return ServerLaunch(None, evidence=UNREAD) if wanted is None else _too_long(wanted)
    return launch


def _too_long(wanted: Engine) -> ServerLaunch:
    return ServerLaunch(wanted, obstacle="its command is too long to be looked into")


def _seen(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    line: str,
    wanted: Engine | None,
    said: Variables,
    budget: Budget,
) -> ServerLaunch | None:
    """Look into a container whose texts betray that this is worth it."""
    # KServe's templates start vLLM in containers that say nothing themselves.
    silent = not command and not args
    budget.read(len(line))
    hinted = wanted is not None or HINT.search(line.lower()) is not None
    if not hinted and not silent and "$" not in line:
        return None
    known = {env: text for env, text in said.items() if text is not None and "$(" not in text}
    if not hinted and silent:
        hinted = names.VLLM_ARGS in known
    elif not hinted:
        text = "\n".join(known.values())
        budget.read(len(text))
        hinted = HINT.search(text.lower()) is not None
    if not hinted:
        return None
    launch = _launch(image, command, args, wanted, known, line, budget)
    for each in (launch, *launch.others) if launch is not None else ():
        if each.engine is not None and each.engine.lever is not None and not each.told_by_us:
            budget.spend(_A_FLAG)
    return launch


def _launch(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    wanted: Engine | None,
    variables: Mapping[str, str],
    line: str,
    budget: Budget,
) -> ServerLaunch | None:
    picture = read_image(image)
    bare, silent = not command, not command and not args
    readable = {key: text for key, text in variables.items() if key not in VARIABLES}
    items = read_items(command, args, readable, budget)
    programs = read_programs(items, readable, is_known, budget)
    found = recognise(programs, picture, bare=bare, silent=silent, line=line)
    if wanted is not None:
        found = _by_word(wanted, found, programs, picture)
    engine = _carrying(found.engine, line, variables, silent=silent)
    engine = _by_variables(engine, image, variables, silent=silent)
    if engine is None:
        return None
    text = " ".join((line, *variables.values())) if variables else line
    budget.read(len(text))
    refers = frozenset(_REFERRED.findall(text))
    deaf: frozenset[str] = frozenset()
    if engine.name == "triton":
        said = text.lower()
        deaf = frozenset(env for pattern, env in _BACKENDS if pattern.search(said) is None)
        engine = engine if names.TF_GROWTH not in deaf else engine._replace(lever=None)
    launch, *others = (
        _started(engine, each, variables, silent=silent)._replace(refers=refers)
        for each in (found, *found.others)
    )
    return launch._replace(others=tuple(others), deaf=deaf)


def _started(
    engine: Engine, found: Recognised, variables: Mapping[str, str], *, silent: bool
) -> ServerLaunch:
    lever, program = engine.lever, found.program
    known = program if program is not None and found.seen and takes_flags(program) else None
    return ServerLaunch(
        engine,
        flag=told(lever, found.args) if lever is not None else None,
        obstacle=_obstacle(engine, found, silent=silent),
        shell=found.seen and program is not None and program.by_shell and not program.reached,
        head=behind_head(known) if known is not None else None,
        end=behind_all(known) if known is not None else None,
        known_by=known_by(program) if program and found.args is not program.words else "",
        seen=found.seen,
        overridden=outranking(lever, found.args, variables) if lever is not None else None,
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
    bare = program is not None and program.path.startswith("-")
    return Recognised(engine, program, words, seen=bool(started) or bare)


def _carrying(
    engine: Engine | None, line: str, variables: Mapping[str, str], *, silent: bool
) -> Engine | None:
    """
    Add the variable by which KServe's templates hand arguments to vLLM, where one is read: by the
    command, or by the one that such a template puts into a container without any.
    """
    if silent and names.VLLM_ARGS in variables and engine in (None, catalog.VLLM):
        return catalog.VLLM._replace(rows=(*catalog.VLLM.rows, VLLM_ARGS))
    if engine is not None and engine.lever is catalog.VLLM.lever and names.VLLM_ARGS in line:
        return engine._replace(rows=(*engine.rows, VLLM_ARGS))
    return engine


def _by_variables(
    engine: Engine | None, image: str, variables: Mapping[str, str], *, silent: bool
) -> Engine | None:
    """Return an engine as images run it that tell it by a variable of their own."""
    name = image.lower()
    if engine in (None, catalog.VLLM, catalog.VLLM_BEFORE_0_20) and "djl" in name:
        inside = " ".join((name, variables.get("OPTION_ROLLING_BATCH", "")))
        return catalog.VLLM_IN_DJL if _IN_DJL.search(inside) else engine
    if engine is catalog.VLLM and silent and _RUNPOD.search(name):
        return catalog.VLLM_AT_RUNPOD
    if engine is catalog.COMFYUI and silent:
        heard = names.COMFYUI_ARGS in variables or "comfyui-boot" in name
        return catalog.COMFYUI_BY_VARIABLE if heard else engine
    return engine


def _obstacle(engine: Engine, found: Recognised, *, silent: bool) -> str:
    """Return why an argument that is appended would not reach the server; empty where it would."""
    lever, program = engine.lever, found.program
    if lever is None:
        return ""
    if program is None:
        return "" if lever.bare and silent else "its arguments stand in the image"
    if not found.seen:
        return "what starts it is not seen"
    if program.by_shell and not program.reached:
        return "its script puts the command together"
    if not takes_flags(program):
        return "it takes flags only behind --"
    if lever.beside and not has_flag(lever.beside, found.args):
        return f"it takes {lever.flags[0]} only beside {lever.beside}"
    return ""
