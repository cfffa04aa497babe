"""
PURE. Everything one container is told, from the figures and from what it says already.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence import names
from gpufence.plan import ContainerPlan, Done, Setting, write_container
from webhook.frameworks.figures import Basis, Injecting, container_figures
from webhook.frameworks.table import (
    GROWTH,
    TABLE,
    XLA,
    XLA_BLANK,
    XLA_NEW,
    XLA_NEW_BLANK,
    FixedRow,
    defeat,
)
from webhook.frameworks.values import lowered, value_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.frameworks.figures import ContainerFigures, LimitOnCard, PodTerms, TooSmall
    from webhook.frameworks.servers import ServerLaunch
    from webhook.frameworks.table import FrameworkRow

HIDDEN = "comes from elsewhere (valueFrom or $(VAR)); left as it is, uncapped"
ENV_FROM = "envFrom may set variables unseen here; those of gpufence win over it"
NO_ARGUMENT = f"{names.ARGS}: no card is known to reckon with, so no argument is appended"
NO_SERVER = f"{names.ARGS}: no known server is started here; name it with {names.FRAMEWORK}"


class Variable(NamedTuple):
    """
    What a container says about one variable already.

    `user` is the user's own text, also where a pass before this one has replaced it. `points`
    marks a variable that reads a slot, `slot` is that slot if it can be used again. `hidden` marks
    a value that cannot be read (valueFrom, `$(VAR)`).
    """

    user: str | None = None
    slot: str = ""
    points: bool = False
    hidden: bool = False


class ContainerText(NamedTuple):
    """
    What one container says, as far as frameworks go.
    """

    name: str
    variables: Mapping[str, Variable]
    launch: ServerLaunch | None = None
    env_from: bool = False


EnvEntry: TypeAlias = dict[str, object]
"""One variable as it stands in a container's `env`."""


class Injection(NamedTuple):
    """
    What becomes of one container; `text` is its part of the plan as it stands on the pod.

    `entries` are variables that read an annotation each, and `values` the texts of those.
    `restored` are variables that an earlier pass pointed at a slot and that get their own text
    back, or go; `argument` is to be appended where there is one.
    """

    plan: ContainerPlan
    text: str
    entries: Mapping[str, EnvEntry]
    values: Mapping[str, str]
    restored: Mapping[str, str | None]
    warnings: tuple[str, ...]
    argument: str
    next_slot: int
    too_small: TooSmall | None


class OwnSettings(NamedTuple):
    """
    The sums of a container, and what it is told if it says nothing itself.
    """

    figures: ContainerFigures
    injection: Injection


_ABSENT = Variable()


def inject(
    text: ContainerText, cards: tuple[LimitOnCard, ...], terms: PodTerms, first_slot: int
) -> Injection:
    """
    Work out one container's settings; `first_slot` is the first number that is free.
    """
    own = own_settings(cards, terms, first_slot)
    if text.variables or text.launch is not None or text.env_from or terms.args:
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
        argument=text.launch.argument if text.launch is not None and work.told else "",
        next_slot=work.next_slot,
        too_small=None if work.idle else figures.too_small,
    )


class _Work:
    """
    One container's settings in the making.
    """

    def __init__(
        self, text: ContainerText, figures: ContainerFigures, terms: PodTerms, first_slot: int
    ) -> None:
        self.text = text
        self.figures = figures
        self.terms = terms
        self.next_slot = first_slot
        self.idle = terms.injecting is Injecting.NOTHING or not terms.fenced
        self.settings: list[Setting] = []
        self.entries: dict[str, EnvEntry] = {}
        self.values: dict[str, str] = {}
        self.warnings: list[str] = []
        self.aware = False
        self.told = False

    def settle_all(self) -> None:
        injecting = self.terms.injecting
        grown: tuple[FrameworkRow | FixedRow, ...] = GROWTH if injecting is Injecting.GROW else ()
        for row in grown:
            self._settle(row, really=True)
        if self.idle:
            return
        really = injecting is Injecting.SET
        for row in self._rows():
            if row not in grown:
                self._settle(row, really=really)
        if really:
            self._warn_of_defeats()

    def cap_bytes(self) -> int | None:
        """
        Return what each process may allocate; servers that plan by themselves count their own
        context, and none is capped that does not know its share.
        """
        launch = self.text.launch
        by_itself = launch is not None and launch.flag.torch
        if self.idle or (by_itself and not self.aware):
            return None
        amount = self.figures.by_basis[Basis.SHARE if by_itself else Basis.PLAIN].amount
        return None if amount is None else amount.allowance_bytes

    def _rows(self) -> Iterator[FrameworkRow | FixedRow]:
        """
        Yield the rows that hold for this container.
        """
        launch = self.text.launch
        hidden_torch = launch is not None and launch.flag.torch
        self.aware = launch is not None and self._knows_share(launch)
        for row in TABLE:
            if row is XLA:
                yield from self._xla_rows()
            elif hidden_torch and not isinstance(row, FixedRow) and row.of_torch:
                points = self.text.variables.get(row.env, _ABSENT).points
                if self.aware or (self.terms.bound and points):
                    yield row._replace(basis=Basis.SHARE)
            elif row is not XLA_NEW_BLANK:
                yield row
        if launch is not None:
            yield launch.flag.row

    def _xla_rows(self) -> Iterator[FrameworkRow | FixedRow]:
        """
        Yield JAX's two names: the one the user chose, and the other as blank.

        Where one of them cannot be read, setting the other could make both non-empty, so both stay.
        """
        old = self.text.variables.get(XLA.env, _ABSENT)
        new = self.text.variables.get(XLA_NEW.env, _ABSENT)
        if old.hidden or new.hidden:
            yield from (row for row, each in ((XLA, old), (XLA_NEW, new)) if each.hidden)
        elif new.user:
            yield from (XLA_BLANK, XLA_NEW)
        else:
            yield from (XLA, XLA_NEW_BLANK)

    def _settle(self, row: FrameworkRow | FixedRow, *, really: bool) -> None:
        env, launch = row.env, self.text.launch
        variable = self.text.variables.get(env, _ABSENT)
        if variable.hidden:
            self.settings.append(Setting(env, "", row.form, Done.LEFT))
            self.warnings.append(f"{env} {HIDDEN}")
            return
        user, label = variable.user, ""
        if launch is not None and self.told and row is launch.flag.row:
            user, label = launch.value or user, launch.flag.text
        value = value_for(row, self.figures, user)
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
        done = value.done if really else Done.PLANNED
        self.settings.append(Setting(env, slot, row.form, done, user, *figures))
        if value.done is Done.LOWERED:
            self.warnings.append(lowered(row, value, user or "", label=label))

    def _new_slot(self) -> str:
        self.next_slot += 1
        return f"s{self.next_slot - 1}"

    def _knows_share(self, launch: ServerLaunch) -> bool:
        """
        Return whether the server stays within its share, told so by the user or, if asked, by us.
        """
        share = self.figures.by_basis[Basis.SHARE].fraction
        if share is None:
            if self.terms.args:
                self.warnings.append(NO_ARGUMENT)
            return launch.told_by_us
        if launch.within(share.ratio):
            return True
        if self.terms.args and not launch.obstacle:
            self.told = self.terms.injecting is Injecting.SET
            return True
        self.warnings.append(launch.unaware(share.fraction, args=self.terms.args))
        return False

    def _warn_of_defeats(self) -> None:
        for env, variable in self.text.variables.items():
            sentence = defeat(env, None if variable.hidden else variable.user, hook=self.terms.hook)
            if sentence:
                self.warnings.append(f"{env} {sentence}")
        if self.text.env_from:
            self.warnings.append(ENV_FROM)
        if self.terms.args and self.text.launch is None:
            self.warnings.append(NO_SERVER)
