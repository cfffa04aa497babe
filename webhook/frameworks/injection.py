"""
PURE. Everything one container is told, from the figures and from what it says already.

The same containers come again and again, a thousand times from one Deployment: what is worked out
here depends on its arguments alone, all of them plain values, and is remembered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.plan import ContainerPlan, Done, Form, Setting, write_container
from webhook.frameworks.ask import Ask, How, Injection, TooSmall, Word
from webhook.frameworks.defeats import defeat
from webhook.frameworks.figures import (
    Basis,
    smallest,
    starved_everywhere,
    sufficient_limit,
)
from webhook.frameworks.remarks import (
    ENV_FROM,
    HIDDEN,
    NO_ARGUMENT,
    NO_SERVER,
    lowered,
    server_unaware,
)
from webhook.frameworks.settle import settle
from webhook.frameworks.table import (
    GROWTH,
    OWN_FRACTION,
    PYTORCH,
    TABLE,
    XLA,
    XLA_BLANK,
    XLA_NEW,
    XLA_NEW_BLANK,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.frameworks.figures import Reckoning
    from webhook.frameworks.servers import Launch
    from webhook.frameworks.settle import Settled
    from webhook.frameworks.table import Row


@lru_cache(maxsize=2048)
def inject(ask: Ask) -> Injection:
    """
    Work out one container's settings.
    """
    work = _Work(ask)
    work.settle_all()
    known = [met.limit_bytes for met in ask.reckoning.met if met.limit_bytes is not None]
    plan = ContainerPlan(
        limit_bytes=min(known, default=None),
        processes=ask.reckoning.processes,
        headroom=ask.reckoning.headroom,
        cap_bytes=_cap(ask, aware=work.aware),
        settings=tuple(work.settings),
    )
    return Injection(
        container=ask.container,
        plan=plan,
        text=write_container(plan),
        slots=tuple(work.slots),
        values=tuple(work.values),
        restored=tuple(work.restored()),
        warnings=tuple(f"{ask.container}: {text}" for text in work.warnings),
        next_slot=work.next_slot,
        argument=ask.launch.argument if ask.launch is not None and work.told else "",
        too_small=None if ask.how is How.NOTHING or not ask.fenced else _too_small(ask.reckoning),
    )


def _cap(ask: Ask, *, aware: bool) -> int | None:
    """
    Return what each process may allocate; servers that plan by themselves count their own context,
    and none is capped that does not know its share.
    """
    by_itself = ask.launch is not None and ask.launch.flag.torch
    if ask.how is How.NOTHING or not ask.fenced or (by_itself and not aware):
        return None
    found = smallest(ask.reckoning, Basis.SHARE if by_itself else Basis.PLAIN).amount
    return None if found is None else found.allowance_bytes


def _too_small(reckoning: Reckoning) -> TooSmall | None:
    best = starved_everywhere(reckoning)
    if best is None:
        return None
    return TooSmall(best.limit_bytes, best.reserve_bytes, sufficient_limit(reckoning, best))


class _Work:
    """
    One container's settings in the making.
    """

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.words = {word.env: word for word in ask.words}
        self.next_slot = ask.first_slot
        self.settings: list[Setting] = []
        self.slots: list[tuple[str, str]] = []
        self.values: list[tuple[str, str]] = []
        self.warnings: list[str] = []
        self.aware = False
        self.told = False

    def settle_all(self) -> None:
        how = self.ask.how
        grown = GROWTH if how is How.GROW else ()
        for row in grown:
            self._settle(row, really=True)
        if how is How.NOTHING or not self.ask.fenced:
            return
        for row in self._rows():
            if row not in grown:
                self._settle(row, really=how is How.SET)
        if how is How.SET:
            self._warn_of_defeats()

    def _rows(self) -> Iterator[Row]:
        """
        Yield the rows that hold for this container.
        """
        launch = self.ask.launch
        hidden_torch = launch is not None and launch.flag.torch
        self.aware = launch is not None and self._knows_share(launch)
        for row in TABLE:
            if row is XLA:
                yield from self._xla_rows()
            elif hidden_torch and row in (PYTORCH, OWN_FRACTION):
                points = self.words.get(row.env, Word(row.env)).points
                if self.aware or (self.ask.bound and points):
                    yield replace(row, basis=Basis.SHARE)
            elif row is not XLA_NEW_BLANK:
                yield row
        if launch is not None:
            yield launch.flag.row

    def _xla_rows(self) -> Iterator[Row]:
        """
        Yield JAX's two names: the one the user chose, and the other as blank.

        Where one of them cannot be read, setting the other could make both non-empty, so both stay.
        """
        old, new = self.words.get(names.XLA_FRACTION), self.words.get(names.XLA_NEW_FRACTION)
        hidden = [word for word in (old, new) if word is not None and word.hidden]
        if hidden:
            rows = {XLA.env: XLA, XLA_NEW.env: XLA_NEW}
            yield from (rows[word.env] for word in hidden)
        elif new is not None and new.user:
            yield from (XLA_BLANK, XLA_NEW)
        else:
            yield from (XLA, XLA_NEW_BLANK)

    def _settle(self, row: Row, *, really: bool) -> None:
        word = self.words.get(row.env, Word(row.env))
        if word.hidden:
            self.settings.append(Setting(row.env, "", row.form, Done.LEFT))
            self.warnings.append(f"{row.env} {HIDDEN}")
            return
        launch = self.ask.launch
        flagged = launch is not None and self.told and row is launch.flag.row
        user = launch.value if launch is not None and flagged and launch.value else word.user
        settled = settle(row, smallest(self.ask.reckoning, row.basis), user)
        if settled is None:
            return
        slot = word.slot
        stays = settled.done is Done.KEPT and row.form is Form.FIXED and not word.points
        if really and not stays:
            slot = slot or self._new_slot()
            self.slots.append((row.env, slot))
            self.values.append((slot, settled.text))
        self._record(row, settled, user, slot if really else "", really=really)
        if settled.done is Done.LOWERED:
            label = launch.flag.text if launch is not None and flagged else ""
            self.warnings.append(lowered(row, settled, user or "", label=label))

    def _record(
        self, row: Row, settled: Settled, user: str | None, slot: str, *, really: bool
    ) -> None:
        figures = settled.figures
        self.settings.append(
            Setting(
                env=row.env,
                slot=slot,
                form=row.form,
                done=settled.done if really else Done.PLANNED,
                user=user,
                limit_bytes=figures.limit_bytes if figures else None,
                reserve_bytes=figures.reserve_bytes if figures else None,
                card_bytes=figures.card_bytes if figures else None,
                allowance_bytes=figures.allowance_bytes if figures else None,
            )
        )

    def _new_slot(self) -> str:
        self.next_slot += 1
        return f"s{self.next_slot - 1}"

    def restored(self) -> Iterator[tuple[str, str | None]]:
        """
        Yield what an earlier pass set and this one does not.
        """
        now = {env for env, _ in self.slots}
        for word in self.ask.words:
            if word.points and word.env not in now:
                yield word.env, word.user

    def _knows_share(self, launch: Launch) -> bool:
        """
        Tell whether the server stays within its share, told so by the user or, if asked, by us.
        """
        share = smallest(self.ask.reckoning, Basis.SHARE).fraction
        if share is None:
            if self.ask.args:
                self.warnings.append(NO_ARGUMENT)
            return launch.told_by_us
        if launch.within(share.ratio):
            return True
        if self.ask.args and not launch.obstacle:
            self.told = self.ask.how is How.SET
            return True
        text = share.fraction
        self.warnings.append(server_unaware(launch, text, args=self.ask.args))
        return False

    def _warn_of_defeats(self) -> None:
        for word in self.ask.words:
            text = defeat(word.env, None if word.hidden else word.user, hook=self.ask.hook)
            if text:
                self.warnings.append(f"{word.env} {text}")
        if self.ask.env_from:
            self.warnings.append(ENV_FROM)
        if self.ask.args and self.ask.launch is None:
            self.warnings.append(NO_SERVER)
