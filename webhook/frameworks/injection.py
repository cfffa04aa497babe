"""PURE. Everything one container is told, from the figures and from what it says already."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from gpufence.plan import ContainerPlan, Done, Setting, write_container
from webhook.frameworks.figures import Basis, Injecting, container_figures
from webhook.frameworks.flags import is_certain, left_out
from webhook.frameworks.launch import by_ssh, several, withheld
from webhook.frameworks.rows import ABSENT, ContainerText, own_rows, table_rows
from webhook.frameworks.table import DEFEATS, GROWTH, XLA, XLA_NEW, FixedRow, FrameworkRow, defeat
from webhook.frameworks.values import allowed, lowered, smaller_share, value_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.frameworks.engines import Engine
    from webhook.frameworks.figures import (
        CardFigures,
        ContainerFigures,
        LimitOnCard,
        PodTerms,
        TooSmall,
    )
    from webhook.frameworks.launch import Edit, ServerLaunch
    from webhook.frameworks.levers import Lever

HIDDEN = "comes from elsewhere (valueFrom or $(VAR)); left as it is, uncapped"
ENV_FROM = "envFrom may set variables unseen here; those of gpufence win over it"
NO_ARGUMENT = f"{names.ARGS}: no card is known to reckon with, so no argument is appended"
NO_SERVER = (
    f"{names.ARGS}: no server with a memory flag is started here as far as can be seen; "
    f"name it with {names.FRAMEWORK}, one of {', '.join(names.ENGINES)}"
)

EnvEntry: TypeAlias = dict[str, object]
"""One variable as it stands in a container's `env`."""


class Injection(NamedTuple):
    """
    What becomes of one container; `text` is its part of the plan as it stands on the pod.

    `entries` are variables that read an annotation each, and `values` the texts of those.
    `restored` are variables that an earlier pass pointed at a slot and that get their own text
    back, or go; `edits` are arguments to be changed or appended. `refusal` is why `evict` does not
    let it in, beside a limit that is too small.
    """

    plan: ContainerPlan
    text: str
    entries: Mapping[str, EnvEntry]
    values: Mapping[str, str]
    restored: Mapping[str, str | None]
    warnings: tuple[str, ...]
    edits: tuple[Edit, ...]
    next_slot: int
    too_small: TooSmall | None
    refusal: str = ""


class OwnSettings(NamedTuple):
    """
    The sums of a container, and what it is told if it says nothing itself.
    """

    figures: ContainerFigures
    injection: Injection


def inject(
    text: ContainerText, cards: tuple[LimitOnCard, ...], terms: PodTerms, first_slot: int
) -> Injection:
    """Work out one container's settings; `first_slot` is the first number that is free."""
    if text.launch is not None:
        figures = container_figures(cards, terms, servers=True)
        return _injection(text, figures, terms, first_slot)
    own = own_settings(cards, terms, first_slot)
    if text.variables or text.env_from or terms.args:
        return _injection(text, own.figures, terms, first_slot)
    return own.injection


@lru_cache(maxsize=128)
def own_settings(cards: tuple[LimitOnCard, ...], terms: PodTerms, first_slot: int) -> OwnSettings:
    """
    Work out the settings of a container that says nothing itself, which are most.

    The one thing that is remembered from pod to pod. It depends on a few numbers and on nobody's
    text: a cluster has a handful of kinds of cards, and limits are round.
    """
    figures = container_figures(cards, terms)
    return OwnSettings(figures, _injection(ContainerText("", {}), figures, terms, first_slot))


def _injection(
    text: ContainerText, figures: ContainerFigures, terms: PodTerms, first_slot: int
) -> Injection:
    work = _Work(text, figures, terms, first_slot)
    work.settle_all()
    plan = ContainerPlan(
        limit_bytes=figures.limit_bytes,
        processes=terms.processes,
        headroom=terms.headroom,
        cap_bytes=work.cap_bytes(),
        settings=tuple(work.settings),
        runs=work.engine.name if work.engine is not None else "",
        reads=work.engine.reads if work.engine is not None else (),
    )
    return Injection(
        plan=plan,
        text=write_container(plan),
        entries=work.entries,
        values=work.values,
        restored={
            env: variable.user
            for env, variable in text.variables.items()
            if variable.points and env not in work.entries
        },
        warnings=tuple([f"{text.name}: {sentence}" for sentence in work.warnings]),
        edits=tuple(work.edits),
        next_slot=work.next_slot,
        too_small=None if work.idle else figures.too_small,
        refusal=f"{text.name}: {work.refusal}" if work.refusal else "",
    )


class _Work:
    """One container's settings in the making."""

    def __init__(
        self, text: ContainerText, figures: ContainerFigures, terms: PodTerms, first_slot: int
    ) -> None:
        self.text = text
        self.figures = figures
        self.terms = terms
        self.next_slot = first_slot
        self.idle = terms.injecting is Injecting.NOTHING or not terms.fenced
        self.engine = text.launch.engine if text.launch is not None else None
        self.lever = self.engine.lever if self.engine is not None else None
        self.settings: list[Setting] = []
        self.entries: dict[str, EnvEntry] = {}
        self.values: dict[str, str] = {}
        self.warnings: list[str] = []
        self.refusal = ""
        self.edits: list[Edit] = []
        self.wish: str | None = None
        self.aware = self.engine is None

    def settle_all(self) -> None:
        injecting = self.terms.injecting
        grown: tuple[FrameworkRow | FixedRow, ...] = GROWTH if injecting is Injecting.GROW else ()
        for row in grown:
            self._settle(row, really=True)
        if self.idle:
            return
        really = injecting is Injecting.SET
        launch = self.text.launch
        if launch is not None:
            self._meet(launch)
        rows = table_rows(self.text, self.terms, aware=self.aware)
        if launch is not None and self.engine is not None:
            rows = chain(rows, own_rows(self.engine, launch, told=bool(self.edits)))
        for row in rows:
            if row not in grown:
                self._settle(row, really=really)
        if really:
            self._warn_of_defeats()

    def cap_bytes(self) -> int | None:
        """
        Return what each process may allocate; None where nothing keeps it to anything, as with a
        server that plans by itself and does not know its share.
        """
        launch, engine = self.text.launch, self.engine
        if self.idle or not self.aware or (launch is not None and launch.possible is not None):
            return None
        basis = Basis.PLAIN
        if engine is not None:
            basis = engine.basis
            if not engine.hard and not engine.common and engine.common is not None:
                return None
        amount = self.figures.by_basis[basis].amount
        return None if amount is None else amount.allowance_bytes

    def _settle(self, row: FrameworkRow | FixedRow, *, really: bool) -> None:
        env = row.env
        variable = self.text.variables.get(env, ABSENT)
        if variable.hidden:
            self.settings.append(Setting(env, "", row.form, Done.LEFT))
            self.warnings.append(f"{env} {HIDDEN}")
            return
        user, label = variable.user, ""
        if self.lever is not None and row is self.lever.row:
            user = user if self.wish is None else self.wish
            label = self.lever.shown if env.startswith(names.SETTING_PREFIX) else ""
        newer = self.text.variables.get(XLA_NEW.env, ABSENT).user if row is XLA else None
        value = value_for(row, self.figures, smaller_share(user, newer) if newer else user)
        if value is None:
            return
        slot = ""
        stays = isinstance(row, FixedRow) and value.done is Done.KEPT and not variable.points
        if really and not stays:
            slot = variable.slot or self._new_slot()
            key = f"{names.ENV_PREFIX}{slot}"
            source = {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}
            self.entries[env] = {"name": env, "valueFrom": source}
            self.values[key] = value.text
        figures = value.figures[:4] if value.figures is not None else ()
        done = value.done if user or not newer else Done.SET
        done = done if really else Done.PLANNED
        self.settings.append(Setting(env, slot, row.form, done, user, *figures))
        if value.done is Done.LOWERED:
            said, label = (user, label) if user or not newer else (newer, XLA_NEW.env)
            self.warnings.append(lowered(row, value, said or "", label=label))

    def _new_slot(self) -> str:
        self.next_slot += 1
        return f"s{self.next_slot - 1}"

    def _meet(self, launch: ServerLaunch) -> None:
        """
        Find out whether a known program stays within its share, told so by the user or by us, and
        say what whoever runs it should know.
        """
        if launch.possible is not None:
            self.warnings.append(withheld(launch.possible.name))
        engine = launch.engine
        if engine is None:
            return
        lever = engine.lever
        self.aware = lever is None or self._is_told(launch, engine, lever)
        if lever is not None and not is_certain(launch.flag):
            self.warnings.append(left_out(lever.shown))
        if engine.word and (engine.name != "ray" or self.terms.processes == 1):
            self.warnings.append(f"{engine.name}: {engine.word}")
        if len(launch.others) >= self.terms.processes:
            self.warnings.append(several(engine.name, len(launch.others) + 1))
        if engine.name == "sshd":
            plain = self.figures.by_basis[Basis.PLAIN].fraction
            self.warnings.append(by_ssh(plain.fraction if plain is not None else "<fraction>"))

    def _is_told(self, launch: ServerLaunch, engine: Engine, lever: Lever) -> bool:
        figures = allowed(lever.row, self.figures)
        servers = (launch, *launch.others)
        if figures is not None:
            told = [self._tell(each, engine, lever, figures) for each in servers]
            return all(told) and all(is_certain(each.flag) for each in servers)
        if self.terms.args and lever.appends:
            self.warnings.append(NO_ARGUMENT)
        return all(each.told_by_us for each in servers)

    def _tell(
        self, launch: ServerLaunch, engine: Engine, lever: Lever, figures: CardFigures
    ) -> bool:
        """Tell one server its share where that can be done, or say why not."""
        share = figures.ratio if lever.row.of_card else Fraction(figures.allowance_bytes)
        within = launch.within(lever, share, figures.card_bytes)
        edit = launch.edit(lever) if self.terms.args else None
        if edit is not None and (not within or launch.flag is None):
            if self.terms.injecting is Injecting.SET:
                self.edits.append(edit)
                if launch.flag is not None and self.wish is None:
                    self.wish = launch.flag.text
            return True
        if within or (launch.flag is None and launch.carried):
            without = lever.appends and lever.default is None and launch.flag is None
            if self.terms.args and without and launch.obstacle:
                self.warnings.append(f"{lever.shown} is not appended: {launch.obstacle}")
            return True
        sentence = launch.unaware(engine, lever, lever.row.write(figures, ""), args=self.terms.args)
        if launch.shell and launch.flag is None and not (launch.unseen or launch.void):
            self.refusal = sentence
        else:
            self.warnings.append(sentence)
        return False

    def _warn_of_defeats(self) -> None:
        told = {"", *(setting.env for setting in self.settings)}
        for env, variable in self.text.variables.items():
            sentence = defeat(env, None if variable.hidden else variable.user, hook=self.terms.hook)
            if sentence and DEFEATS[env].cap in told:
                self.warnings.append(f"{env} {sentence}")
        if self.text.env_from:
            self.warnings.append(ENV_FROM)
        if self.terms.args and self.engine is None:
            self.warnings.append(NO_SERVER)
