"""PURE. What gpufence assumes of a driver, each assumption beside what was measured."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - the table's type
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.commands.verify.facts import CardFacts, CardTrial, DriverFacts  # noqa: TC001 - of a NamedTuple
from gpufence import names
from gpufence.errors import Finding, Level, look, ok, unknown, wrong
from gpufence.quantity import KIB, MIB, write_mebibytes
from gpufence.reserves import Reserves, write_reserves
from gpufence.share import reserve_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.commands.verify.facts import CapTrial, Growth

SLACK_BYTES: Final = 4 * MIB
SLACK_HUNDREDTHS: Final = 2
"""What a driver may add to an amount that a program asks for."""

GONE_SECONDS: Final = 2.0
"""So long a process that has ended may stay listed: two looks of the agent."""

LOOK_SECONDS: Final = 0.1
"""A look at a card with all its lists takes at most a tenth of the agent's second."""

_PIDS: Final = "PIDs"
_BYTES: Final = "bytes of a process"
_ENDED: Final = "processes that end"
_WHOLE: Final = 0.9
_CONTEXT_STEP: Final = 64 * MIB
_CONTEXT_ROOM: Final = 128 * MIB  # of libraries that a bare context has not loaded
_TABLE: Final = Reserves()
_REPORT: Final = "attach the facts (-o json) to an issue of gpufence"
_NOT_TRIED: Final = "say so again on an idle card"


def findings(facts: DriverFacts, reserves: Reserves = _TABLE) -> list[Finding]:
    """Return every assumption with what was found; `reserves` is what is set for contexts."""
    if facts.trouble:
        return [wrong("cards", facts.trouble, "gpufence-agent check names what is missing")]
    return [
        _of_pids(facts),
        *(each for card in facts.cards for each in _of_card(facts, card, reserves)),
    ]


def verdict(found: Sequence[Finding]) -> str:
    """Return the answer in a sentence."""
    differing = sum(item.level is Level.WRONG for item in found)
    if differing:
        return f"Differs: {differing} of {len(found)} assumptions."
    untried = sum(item.level is Level.UNKNOWN for item in found)
    if not as_assumed(found):
        return "Nothing was tried."
    return f"As assumed.{f' Not tried: {untried}.' if untried else ''}"


def as_assumed(found: Sequence[Finding]) -> bool:
    """Return whether something was tried on a card, and nothing differs."""
    levels = {item.level for item in found[1:]}
    return Level.OK in levels and all(item.level is not Level.WRONG for item in found)


def _of_pids(facts: DriverFacts) -> Finding:
    if facts.host_pids:
        return ok("PID namespace", "the host's")
    return look(
        "PID namespace",
        "is not the host's, so that the processes of others need not be listed here",
        "set hostPID: true in the pod; alone on a machine run it outside of containers",
    )


def _of_card(facts: DriverFacts, card: CardFacts, reserves: Reserves) -> Iterator[Finding]:
    where = f"{card.uuid[:12]} "
    if card.untried:
        yield unknown(where + "card", card.untried, _NOT_TRIED)
    if card.trouble:
        remedy = f"pods on it are not fenced by the agent; {_REPORT}"
        yield wrong(where + "card", card.trouble, remedy)
    if card.trial is not None:
        case = TriedCard(facts, card, card.trial, reserves)
        yield from (each._replace(subject=where + each.subject) for each in _of_trial(case))


class TriedCard(NamedTuple):
    """What is judged at a time."""

    facts: DriverFacts
    card: CardFacts
    trial: CardTrial
    reserves: Reserves

    @property
    def plain(self) -> Growth:
        """Return what became of memory that was taken in the plainest way."""
        return next(each for each in self.trial.growths if each.kind == "malloc")

    @property
    def reserved_bytes(self) -> int:
        return _reserved(self.card, self.reserves)


def _of_trial(case: TriedCard) -> Iterator[Finding]:
    """Leave out what only follows from something that differs."""
    differing = set[str]()
    for check, needed in _CHECKS:
        found = None if differing & needed else check(case)
        if found is not None:
            if found.level is Level.WRONG:
                differing.add(found.subject)
            yield found
    yield from (_cap(case, each) for each in case.trial.caps)


def _name(case: TriedCard) -> Finding:
    ours, cudas = case.card.uuid, case.trial.cuda_uuid
    if ours.partition("-")[2] == cudas.partition("-")[2]:
        return ok("name", "CUDA and NVML name the card alike")
    remedy = f"what is measured of it cannot be told from another card's; {_REPORT}"
    return wrong("name", f"CUDA says {cudas}, NVML {ours}", remedy)


def _total(case: TriedCard) -> Finding:
    subject, seen, whole = "size", case.trial.visible_bytes, case.card.total_bytes
    text, held = f"NVML {_mib(whole)}, a program sees {_mib(seen)}", case.facts.driver_limit_bytes
    if _WHOLE * whole <= seen <= whole:
        return ok(subject, text)
    if held is not None and seen <= held:
        return ok(subject, f"{text}, held by the driver to {_mib(held)}")
    remedy = "fractions are taken of what a program sees: set gpufence.io/memory in bytes, and "
    return wrong(subject, text, remedy + _REPORT)


def _listed(case: TriedCard) -> Finding:
    listing = case.trial.listing
    if listing.under_its_pid:
        return ok(_PIDS, "a process is listed under the PID that it has here")
    if listing.strangers:
        text = f"a process is listed under a PID of another namespace ({len(listing.strangers)})"
        return wrong(_PIDS, text, "set hostPID: true and GPUFENCE_PROC to the host's /proc")
    remedy = f"no pod of this node can be fenced by the agent: set hostPID: true; {_REPORT}"
    return wrong(_PIDS, "a process that holds memory is in no list", remedy)


def _amount(case: TriedCard) -> Finding:
    return _growth(_BYTES, case.plain)


def _other_ways(case: TriedCard) -> Finding:
    others = [each for each in case.trial.growths if each.kind in {"pool", "virtual"}]
    bad = next((each for each in others if _growth("", each).level is Level.WRONG), None)
    if bad is not None:
        return _growth(f"memory by {bad.kind}", bad)
    had = ", ".join(each.kind for each in others if not each.refused)
    return ok("pools and mappings", f"counted likewise: {had or 'none was had'}")


def _growth(subject: str, growth: Growth) -> Finding:
    asked, listed = growth.asked_bytes, growth.process_bytes
    if growth.refused:
        return unknown(subject, f"CUDA refused: {growth.refused}", _NOT_TRIED)
    text = f"of {_mib(asked)} taken, {'nothing known' if listed is None else _mib(listed)}"
    if listed is None:
        remedy = "the driver does not say: pods on this card are shown, never evicted by the agent"
        return wrong(subject, text, remedy)
    if _equal(listed, asked):
        return ok(subject, f"{text} listed")
    unit = ", as if it counted in KiB" if _equal(listed * KIB, asked) else ""
    return wrong(subject, f"{text} listed{unit}", f"limits cannot be compared with it; {_REPORT}")


def _card_bytes(case: TriedCard) -> Finding:
    asked, grown = case.plain.asked_bytes, case.plain.card_bytes
    text = f"of {_mib(asked)} taken, {_mib(grown)} in use more"
    remedy = f"memory pressure cannot be seen on this card; {_REPORT}"
    return (ok if _equal(grown, asked) else partial(wrong, remedy=remedy))(
        "bytes of the card", text
    )


def _free(case: TriedCard) -> Finding:
    asked, less = case.plain.asked_bytes, case.plain.free_bytes
    text = f"of {_mib(asked)} taken, CUDA says {_mib(less)} less is free"
    remedy = f"servers that fill what is free are told wrong sizes; {_REPORT}"
    return (ok if _equal(less, asked) else partial(wrong, remedy=remedy))("what is free", text)


def _managed(case: TriedCard) -> Finding | None:
    growth = next((each for each in case.trial.growths if each.kind == "managed"), None)
    if growth is None or growth.process_bytes is None:
        return None
    text = f"of {_mib(growth.asked_bytes)} managed memory, {_mib(growth.process_bytes)} listed"
    if growth.process_bytes <= SLACK_BYTES:
        return ok("managed memory", f"{text}: it is attributed to no process")
    return wrong("managed memory", text, f"it counts to the limit here; {_REPORT}")


def _given_back(case: TriedCard) -> Finding:
    left = {each.kind: max(each.left_bytes or 0, 0) for each in case.trial.growths}
    kind = max(left, key=left.__getitem__)
    text = f"at most {_mib(left[kind])} stay listed ({kind})"
    remedy = f"a pod that obeys may be evicted; {_REPORT}"
    subject = "memory given back"
    return ok(subject, text) if left[kind] <= SLACK_BYTES else wrong(subject, text, remedy)


def _context(case: TriedCard) -> Finding:
    takes, subject = case.trial.context_bytes or 0, "CUDA context"
    text = f"takes {_mib(takes)}, {_mib(case.reserved_bytes)} is kept for it"
    setting = _setting(case)
    if takes <= case.reserved_bytes:
        remedy = f"{setting} at the webhook leaves the programs that were tried more"
        return ok(subject, text)._replace(remedy=remedy if setting else "")
    return wrong(subject, text, f"set {setting} at the webhook")


def _setting(case: TriedCard) -> str:
    """Return what to set where this card's model is to have another reserve, whole."""
    cards, reserves = case.facts.cards, case.reserves
    now = {card.model: _reserved(card, reserves) for card in cards}
    best = {
        key: max(_to_keep(card, now[key]) for card in cards if card.model == key) for key in now
    }
    differing = {key: each for key, each in best.items() if each != now[key]}
    text = write_reserves(reserves.with_models(differing))
    return f'{names.RESERVE}="{text}"' if case.card.model in differing else ""


def _reserved(card: CardFacts, reserves: Reserves) -> int:
    own = reserves.of(card.model)
    return reserve_bytes(card.compute_capability) if own is None else own


def _to_keep(card: CardFacts, now: int) -> int:
    """
    Return what to keep for a context: less than now only where programs with a cap were tried,
    since a bare context lacks their libraries.
    """
    if card.trial is None or card.trial.context_bytes is None:
        return now
    takes = card.trial.context_bytes
    tried = [each.most_bytes - each.told_bytes for each in card.trial.caps if not each.trouble]
    if takes > now:
        return _in_steps(takes + _CONTEXT_ROOM)
    return min(now, _in_steps(max(takes + _CONTEXT_ROOM, *tried))) if tried else now


def _in_steps(amount: int) -> int:
    return -(-amount // _CONTEXT_STEP) * _CONTEXT_STEP


def _neighbour(case: TriedCard) -> Finding:
    listed, subject = case.trial.listing.neighbour_bytes, "two processes"
    if listed is not None and listed >= case.trial.listing.neighbour_asked:
        return ok(subject, "each is listed with its own amount")
    text = "the second is not listed" if listed is None else f"the second shows {_mib(listed)}"
    return wrong(subject, text, f"a pod's neighbours cannot be told apart; {_REPORT}")


def _mps(case: TriedCard) -> Finding | None:
    if not (case.facts.mps or case.trial.listing.mps_server):
        return None
    if case.trial.listing.mps_client:
        return ok("MPS", "clients are listed as such")
    remedy = "an eviction may end a client's neighbours: keep namespaces that use it in mode cap; "
    return wrong("MPS", "a server has the card, and its clients are not listed", remedy + _REPORT)


def _gone(case: TriedCard) -> Finding:
    ending = case.trial.ending
    ways = {"ended": ending.exited_seconds, "was killed": ending.killed_seconds}
    for way, seconds in ways.items():
        if seconds is None or seconds > GONE_SECONDS:
            text = f"a process that {way} stays listed"
            remedy = "its memory is no pod's, and an eviction may free nothing at once; "
            return wrong(_ENDED, text, remedy + _REPORT)
    return ok(_ENDED, "are no longer listed")


def _left(case: TriedCard) -> Finding:
    left, subject = max(case.trial.ending.left_bytes, 0), "memory of the dead"
    text = f"{_mib(left)} are still in use"
    remedy = f"an eviction does not free the card; {_REPORT}"
    return ok(subject, text) if left <= 2 * SLACK_BYTES else wrong(subject, text, remedy)


def _speed(case: TriedCard) -> Finding:
    listing = case.trial.listing
    median = sorted(listing.look_seconds)[len(listing.look_seconds) // 2]
    text = f"{1000 * median:.1f} ms with lists, {listing.processes} processes"
    if median <= LOOK_SECONDS:
        return ok("a look", text)
    remedy = f"set GPUFENCE_LIST_SECONDS={max(10, round(100 * median))} at the agent"
    return wrong("a look", text, f"{remedy} and GPUFENCE_INTERVAL_SECONDS=2")


def _identity(case: TriedCard) -> Finding:
    identity, subject = case.trial.identity, "process and pod"
    if identity.age_seconds is None:
        text = "the kernel does not show the process"
        return wrong(subject, text, "mount /proc without hidepid, or add CAP_SYS_PTRACE")
    if case.facts.in_container and not identity.container:
        text = f"control group {' '.join(identity.cgroup)[:120]!r} names no container"
        return wrong(subject, text, f"its runtime names cgroups in a way of its own; {_REPORT}")
    return ok(subject, "container recognised" if identity.container else "runs in no container")


def _cap(case: TriedCard, trial: CapTrial) -> Finding:
    subject = f"cap {trial.name}"
    if trial.trouble:
        return unknown(subject, trial.trouble, "try the program alone")
    text = f"{_mib(trial.told_bytes)} allowed, {_mib(trial.most_bytes)} held at most, all included"
    outside = max(case.reserved_bytes, case.trial.context_bytes or 0)
    if trial.most_bytes <= trial.told_bytes + outside + SLACK_BYTES:
        return ok(subject, text)
    return wrong(subject, text, "the program does not keep to it: the agent alone fences it")


def _equal(listed: int, asked: int) -> bool:
    return asked <= listed <= asked * (100 + SLACK_HUNDREDTHS) // 100 + SLACK_BYTES


def _mib(amount: int) -> str:
    return write_mebibytes(amount)


_LISTS: Final = frozenset({_PIDS})
_AMOUNTS: Final = frozenset({_PIDS, _BYTES})
_CHECKS: Final[tuple[tuple[Callable[[TriedCard], Finding | None], frozenset[str]], ...]] = (
    (_name, frozenset()),
    (_total, frozenset()),
    (_listed, frozenset()),
    (_amount, _LISTS),
    (_other_ways, _AMOUNTS),
    (_card_bytes, _AMOUNTS),
    (_free, frozenset()),
    (_managed, _AMOUNTS),
    (_given_back, _AMOUNTS),
    (_context, _AMOUNTS),
    (_neighbour, _AMOUNTS),
    (_mps, _LISTS),
    (_gone, _LISTS),
    (_left, frozenset({_PIDS, _ENDED})),
    (_speed, frozenset()),
    (_identity, frozenset()),
)
"""Each with the subjects that it says nothing about where they differ already."""
