"""PURE. Everything one container is told, from the figures and from what it says already."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.plan import (
    ContainerPlan,
    Done,
    Setting,
    write_amounts,
    write_container,
    write_setting,
)
from webhook.driver_limits import VARIABLES as DRIVER_VARIABLES
from webhook.driver_limits import holding
from webhook.engines import words
from webhook.engines.launch import UNREAD
from webhook.engines.levers import is_certain
from webhook.frameworks.figures import Basis, Injecting, container_figures
from webhook.frameworks.table import (
    DEFEATS,
    GROWTH,
    XLA,
    XLA_NEW,
    FixedRow,
    FrameworkRow,
    allowed,
    blank_settings,
    defeat,
    lowered,
    read_slot,
    slot_name,
    smaller_share,
    value_for,
)
from webhook.rewrite.burst import BurstTold, told
from webhook.rewrite.containers import ABSENT, ContainerText, own_rows, table_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.engines.catalog import Engine
    from webhook.engines.launch import ServerLaunch
    from webhook.engines.levers import Lever
    from webhook.engines.recognise import Edit
    from webhook.frameworks.figures import (
        CardFigures,
        ContainerFigures,
        LimitOnCard,
        PodTerms,
        TooSmall,
    )
    from webhook.frameworks.table import EnvEntry, Value

HIDDEN = "comes from elsewhere (valueFrom or $(VAR)); left as it is, uncapped"
ENV_FROM = "envFrom may set variables unseen here; those of gpufence win over it"

_OF_FRAMEWORKS = frozenset(
    (
        *(names.PYTORCH_CONF, names.XLA_FRACTION, names.XLA_NEW_FRACTION, names.CUPY_LIMIT),
        *(names.PADDLE_LIMIT, names.JULIA_LIMIT),
    )
)
"""Variables that are set by whoever runs what keeps to them."""


class Injection(NamedTuple):
    """
    What becomes of one container; `text` is its part of the plan as it stands on the pod, and
    `plan` the same without its settings.

    `entries` are variables that read an annotation each, and `values` the texts of those.
    `restored` are variables that an earlier pass pointed at a slot and that get their own text
    back, or go, unless the pod is only observed. `literals` are variables with fixed values.
    `edits` are arguments to be changed or appended. `refusal` is why `evict` does not let it in,
    beside a limit that is too small.
    """

    plan: ContainerPlan
    text: str
    entries: Mapping[str, EnvEntry]
    values: Mapping[str, str]
    too_small: TooSmall | None
    restored: Mapping[str, str | None] = MappingProxyType({})
    literals: Mapping[str, EnvEntry] = MappingProxyType({})
    warnings: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    refusal: str = ""


def inject(
    text: ContainerText, cards: tuple[LimitOnCard, ...], terms: PodTerms, number: int
) -> Injection:
    """Work out one container's settings; `number` is in the names of its slots."""
    server, changes = text.launch is not None, terms.bound or terms.gives_back
    plain = not (server or text.variables or text.env_from or terms.args or changes)
    if not plain or cards[0].driver:
        burst = told(text.launch, cards, terms) if terms.bursts else BurstTold(cards)
        figures = container_figures(burst.cards, terms, servers=server)
        return _injection(text, figures, terms, number, burst)
    return own_settings(cards, terms, number, framework=text.framework)


@lru_cache(maxsize=128)
def own_settings(
    cards: tuple[LimitOnCard, ...], terms: PodTerms, number: int, *, framework: bool
) -> Injection:
    """
    Put the amounts of a container into what every one is told that says nothing itself. Remembered
    from pod to pod: it depends on a few numbers and on nobody's text, and limits are round.
    """
    figures = container_figures(cards, terms)
    plain, tensorflow = figures.by_basis
    amounts = (plain.fraction, plain.amount, tensorflow.fraction)
    known = tuple([each is not None for each in amounts])
    idle = terms.injecting is Injecting.NOTHING or not terms.fenced
    blank = blank_settings(terms.injecting, number, known, idle=idle)
    written = {str(at): write_amounts(*each[:4]) for at, each in enumerate(amounts) if each}
    cap = None if idle or plain.amount is None else plain.amount.allowance_bytes
    kept = cap is None or framework
    plan = ContainerPlan(figures.limit_bytes, terms.processes, terms.headroom, cap, kept=kept)
    return Injection(
        plan=plan,
        text=write_container(plan, blank.settings % written),
        entries=blank.entries,
        values=dict(zip(blank.keys, blank.values.format(*amounts).split("\n"), strict=False)),
        too_small=None if idle else figures.too_small,
    )


def _injection(
    text: ContainerText, figures: ContainerFigures, terms: PodTerms, number: int, burst: BurstTold
) -> Injection:
    work = _Work(text, figures, terms, number, burst)
    work.settle_all()
    cap, kept = work.cap()
    plan = ContainerPlan(
        limit_bytes=figures.limit_bytes,
        processes=terms.processes,
        headroom=terms.headroom,
        cap_bytes=cap,
        runs=work.engine.name if work.engine is not None else "",
        reads=work.reads() if work.engine is not None else (),
        kept=kept,
    )
    return Injection(
        plan=plan,
        text=write_container(plan, ",".join(map(write_setting, work.settings))),
        entries=work.entries,
        values=work.values,
        restored={
            env: variable.user
            for env, variable in text.variables.items()
            if variable.points and env not in {**work.entries, **work.literals}
        },
        literals=work.literals,
        warnings=tuple([f"{text.name}: {sentence}" for sentence in work.warnings]),
        edits=tuple(work.edits),
        too_small=None if work.idle else figures.too_small,
        refusal=f"{text.name}: {work.refusal}" if work.refusal else "",
    )


class _Work:
    """One container's settings in the making."""

    def __init__(
        self,
        text: ContainerText,
        figures: ContainerFigures,
        terms: PodTerms,
        number: int,
        burst: BurstTold,
    ) -> None:
        self.text = text
        self.figures = figures
        self.terms = terms
        self.number = number
        self.burst = burst
        self.idle = terms.injecting is Injecting.NOTHING or not terms.fenced
        self.engine = text.launch.engine if text.launch is not None else None
        self.lever = self.engine.lever if self.engine is not None else None
        self.settings: list[Setting] = []
        self.entries: dict[str, EnvEntry] = {}
        self.values: dict[str, str] = {}
        self.driver = figures.driver_bytes is not None
        self.literals: Mapping[str, EnvEntry] = {}
        self.warnings: list[str] = []
        self.refusal = ""
        self.edits: list[Edit] = []
        self.wish: str | None = None
        self.aware = self.engine is None

    def settle_all(self) -> None:
        injecting = self.terms.injecting
        limit = self.figures.driver_bytes
        if limit is not None:
            users = {env: self.text.variables.get(env, ABSENT).user for env in DRIVER_VARIABLES}
            held = holding(limit, users, really=injecting is Injecting.SET)
            self.settings += held.settings
            self.literals = held.entries
            self.warnings += held.warnings
        grown: tuple[FrameworkRow | FixedRow, ...] = GROWTH if injecting is Injecting.GROW else ()
        for row in grown:
            self._settle(row, really=True)
        if self.idle:
            return
        really = injecting is Injecting.SET
        launch = self.text.launch
        if launch is not None:
            self._meet(launch)
        rows = table_rows(self.text, self.terms, aware=self.aware, driver=self.driver)
        if launch is not None and self.engine is not None:
            rows = chain(rows, own_rows(self.engine, launch, told=bool(self.edits)))
        for row in chain(rows, self.burst.rows):
            if row not in grown:
                self._settle(row, really=really)
        if really:
            self._warn_of_defeats()

    def reads(self) -> tuple[str, ...]:
        """Return the settings of a known program that are set, and heard by it here."""
        launch, engine = self.text.launch, self.engine
        if engine is None or launch is None or (engine.planner and not self.aware):
            return ()
        heard = self._flags_heard(launch)
        own = {row.env for row in engine.rows} | (engine.common or frozenset())
        for setting in self.settings:
            useless = self.lever is not None and setting.env == self.lever.row.env and launch.void
            if setting.env in own - launch.deaf and setting.done is not Done.LEFT and not useless:
                heard.append(setting.env)
        return tuple(heard)

    def _flags_heard(self, launch: ServerLaunch) -> list[str]:
        lever = self.lever
        if lever is None or not self.aware or launch.void or launch.overridden:
            return []
        given = launch.flag is not None or bool(self.edits)
        return [lever.shown] if given else []

    def cap(self) -> tuple[int | None, bool]:
        """
        Return what each process may allocate, and whether something is known that keeps to it; None
        where nothing is told, as with a server that plans by itself and does not know its share.
        """
        launch, engine = self.text.launch, self.engine
        if self.idle or not self.aware or (launch is not None and launch.evidence is not None):
            return None, True
        basis = Basis.PLAIN
        if engine is not None:
            basis = engine.basis
            if not engine.hard and not engine.common and engine.common is not None:
                return None, True
        amount = self.figures.by_basis[basis].amount
        if amount is None:
            return None, True
        if engine is not None and launch is not None and engine.common is not None:
            kept = engine.hard or names.PYTORCH_CONF in (engine.common - launch.deaf)
            return (amount.allowance_bytes if kept else None), True
        if engine is not None:  # whatever Ray starts
            return None, True
        said = [item.user for item in self.settings if item.env in _OF_FRAMEWORKS]
        kept = (self.text.framework and not self.driver) or bool("".join(filter(None, said)))
        return amount.allowance_bytes, kept

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
            if self.terms.bound and not variable.slot:
                self._leave(row, value, user)
                return
            slot = variable.slot or slot_name(env, self.number)
            self.entries[env] = read_slot(env, slot)
            self.values[f"{names.ENV_PREFIX}{slot}"] = value.text
        figures = value.figures[:4] if value.figures is not None else ()
        done = value.done if user or not newer else Done.SET
        done = done if really else Done.PLANNED
        self.settings.append(Setting(env, slot, row.form, done, user, *figures))
        if value.done is Done.LOWERED:
            said, label = (user, label) if user or not newer else (newer, XLA_NEW.env)
            self.warnings.append(lowered(row, value, said or "", label=label))

    def _leave(self, row: FrameworkRow | FixedRow, value: Value, user: str | None) -> None:
        """Note what stays as the user wrote it, in a variable that cannot be changed any more."""
        if user:
            done = value.done if value.done is Done.KEPT else Done.LEFT
            figures = value.figures[:4] if value.figures is not None else ()
            self.settings.append(Setting(row.env, "", row.form, done, user, *figures))

    def _meet(self, launch: ServerLaunch) -> None:
        """Find out whether a known program stays within its share, told by its owner or by us."""
        self.warnings += [self.burst.why] if self.burst.why else []
        if launch.evidence is UNREAD:
            self.refusal = words.unread(self.text.name)
        elif launch.evidence is not None and not self.driver:
            self.warnings.append(words.uncapped(launch.evidence, self._usual()))
        engine = launch.engine
        if engine is None:
            return
        lever = engine.lever
        self.aware = lever is None or self._is_told(launch, engine, lever)
        if lever is not None and not is_certain(launch.flag):
            self.warnings.append(words.left_out(engine, lever))
        self._say(launch, engine, lever)

    def _say(self, launch: ServerLaunch, engine: Engine, lever: Lever | None) -> None:
        """Say what whoever runs a known program should know."""
        usual = self._usual()
        if engine.word:
            self.warnings.append(f"{words.called(engine)}: {engine.word}")
        if usual and words.is_too_small(engine, usual):
            self.warnings.append(words.too_small_for_models(engine, usual))
        elif engine.after_weights and lever is not None and usual and not launch.overridden:
            self.warnings.append(words.after_weights(engine, lever, usual))
        if engine.name == "ray":
            self.warnings += [] if self.driver else [words.any_actors(usual)]
            if self.terms.processes == 1:
                self.warnings.append(words.ACTORS)
        if len(launch.others) >= self.terms.processes:
            self.warnings.append(words.several(engine, len(launch.others) + 1))
        if engine.name == "sshd" and not self.driver:
            self.warnings.append(words.by_ssh(usual.fraction if usual else "<fraction>"))

    def _usual(self) -> CardFigures | None:
        """Return the sums of the card on which a limit is the smallest part."""
        return self.figures.by_basis[Basis.PLAIN].fraction

    def _is_told(self, launch: ServerLaunch, engine: Engine, lever: Lever) -> bool:
        figures = allowed(lever.row, self.figures)
        servers = (launch, *launch.others)
        if figures is not None:
            told = [self._tell(each, engine, lever, figures) for each in servers]
            return all(told) and all(is_certain(each.flag) for each in servers)
        if self.terms.args and lever.appends:
            self.warnings.append(words.NO_ARGUMENT)
        return all(each.told_by_us for each in servers)

    def _tell(
        self, launch: ServerLaunch, engine: Engine, lever: Lever, figures: CardFigures
    ) -> bool:
        """Tell one server its share where that can be done, or say why not."""
        share = figures.ratio if lever.row.of_card else Fraction(figures.allowance_bytes)
        within = launch.within(lever, share, figures.card_bytes)
        edit = launch.edit(lever) if self.terms.args and not self.terms.bound else None
        carried = launch.flag is None and self._is_carried(launch)
        if edit is not None and not carried and (not within or launch.flag is None):
            if self.terms.injecting is Injecting.SET:
                self.edits.append(edit)
                if launch.flag is not None and self.wish is None:
                    self.wish = launch.flag.text
            return True
        if within or carried:
            without = lever.appends and lever.default is None and launch.flag is None
            if self.terms.args and without and launch.obstacle:
                self.warnings.append(f"{lever.shown} is not set: {launch.obstacle}")
            return True
        sentence = words.unaware(launch, engine, lever, figures, args=self.terms.args)
        if launch.refused(lever):
            self.refusal = sentence
        elif not words.is_too_small(engine, figures):
            self.warnings.append(sentence)
        return False

    def _is_carried(self, launch: ServerLaunch) -> bool:
        """Return whether a variable hands our flag to the server; at binding, one that is there."""
        if not self.terms.bound:
            return bool(launch.carriers)
        return any(self.text.variables.get(env, ABSENT).slot for env in launch.carriers)

    def _warn_of_defeats(self) -> None:
        told = {"", *(setting.env for setting in self.settings)}
        for env, variable in self.text.variables.items():
            sentence = defeat(env, None if variable.hidden else variable.user, hook=self.terms.hook)
            if sentence and DEFEATS[env].cap in told:
                self.warnings.append(f"{env} {sentence}")
        if self.text.env_from:
            self.warnings.append(ENV_FROM)
        if self.terms.asks_args and self.engine is None:
            self.warnings.append(words.NO_SERVER)
