"""What an Event says, whatever names and amounts others have chosen."""

from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from agent.events import sentences
from agent.events.episodes import Notice
from agent.events.notices import notices_of_act
from agent.model.decision import (
    Action,
    ActResult,
    Answer,
    Blame,
    CardFinding,
    ContainerExcess,
    Ineffective,
    Outcome,
    Verdict,
)
from agent.model.pod import Cap, PodLimit
from agent.model.use import CardUse, PodOnCard, ProcessUse
from gpufence.cards import Card
from gpufence.event_text import MOST_FIRST, MOST_HELP_URL, MOST_TEXT, Anchor, with_link
from gpufence.mode import Mode
from gpufence.quantity import GIB
from tests.support.agent.builders import controller, pod
from tests.support.running import examples

PAGE = "https://wiki.example.com/".ljust(MOST_HELP_URL, "x")
LARGEST = 2**63

hostile = st.one_of(
    st.text(min_size=1, max_size=400),
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True),
    st.sampled_from(["\x1b[2J\x1b]0;x\x07", "\u202egpj", "a\nb", "p" * 253, "x" * 63]),
)
amounts = st.integers(0, LARGEST)


def verdict_of(
    name: str, texts: str, amounts: tuple[int, int], outcome: Outcome, count: int = 2
) -> Verdict:
    used, limit = amounts
    card = Card("GPU-0", 7, f"NVIDIA {name}", 80 * GIB)
    item = pod(
        name,
        mode=Mode.OBSERVE if outcome is Outcome.WOULD_EVICT else Mode.EVICT,
        limits={card.uuid: PodLimit(limit)},
        caps={name: Cap(limit, used)},
        controller=controller(name=name),
        exempt=texts,
        undeclared=texts,
    )
    processes = tuple(
        ProcessUse(2**22 + each, used // count, None, item.uid, name, confirmed=True)
        for each in range(count)
    )
    use = PodOnCard(
        item, card, limit, used, used, processes, {name: used, "b": 0}, report_over=True
    )
    return Verdict(item, outcome, use, over_seconds=1e6, due_seconds=1e6, by_shortage=True)


def said_of(verdict: Verdict, texts: str) -> Iterator[Notice]:
    name, use = verdict.pod.name, verdict.use
    assert use is not None
    yield from sentences.limit_exceeded(verdict)
    yield from sentences.would_evict(verdict)
    yield from sentences.undeclared(verdict)
    yield from sentences.termination_stuck(verdict)
    yield from sentences.cap_too_low(verdict, LARGEST)
    yield from sentences.cap_ineffective(verdict, Ineffective(name, 2**22, LARGEST, LARGEST))
    yield from sentences.container_exceeded(verdict, ContainerExcess(name, LARGEST, LARGEST))
    for answer in (Answer.ACCEPTED, Answer.BLOCKED, Answer.FAILED, Answer.TOO_LARGE):
        gone = verdict._replace(outcome=Outcome.EVICT, action=Action.EVICT)
        yield from notices_of_act(gone, ActResult(answer, detail=texts))
    seen = CardUse(use.card, None, 0.0, mps=False, pods={}, processes=use.processes * 3,
                   unattributed_bytes=LARGEST)  # fmt: skip
    finding = CardFinding(seen, LARGEST, overcommitted=True, unattributed_bytes=LARGEST)
    yield sentences.overcommitted("n", finding)
    yield sentences.unattributed("n", finding)
    yield sentences.short("n", use.card, LARGEST, Blame(LARGEST, verdict.pod))
    yield sentences.eviction_suspended("n", name, 110, 110)
    yield sentences.unjudged("n", use.card, 1e6)


@examples(60)
@given(hostile, hostile, st.tuples(amounts, amounts), st.sampled_from(Outcome), st.integers(1, 4))
@example("x" * 63, "y" * 400, (LARGEST, LARGEST), Outcome.OTHER_CARD, 4)
def test_whatever_it_is_called_an_event_is_short_and_harmless(
    name: str, texts: str, amounts: tuple[int, int], outcome: Outcome, count: int
) -> None:
    """At most 400 printable characters, of which the last are the command and the link."""
    for notice in said_of(verdict_of(name, texts, amounts, outcome, count), texts):
        text = with_link(notice.message, PAGE, notice.anchor)

        assert text.isprintable()
        assert len(text) <= MOST_TEXT
        if notice.anchor is not None:
            command = "kubectl gpufence explain "
            assert text.endswith(f"{PAGE}#{notice.anchor}")
            assert command in text
            assert len(name) > 63 or text.split(command)[1].startswith(notice_name(name))


@examples(60)
@given(hostile, st.tuples(st.integers(GIB, LARGEST), amounts), st.sampled_from(Outcome))
@example("x" * 63, (LARGEST, LARGEST), Outcome.OTHER_CARD)
def test_the_value_that_would_do_is_never_cut(
    name: str, amounts: tuple[int, int], outcome: Outcome
) -> None:
    """Of an evicted pod it is said what to ask for, or that no limit on the card would do."""
    used, limit = amounts
    verdict = verdict_of(name, "", (max(used, limit), min(used, limit)), outcome)
    for notice in (*sentences.evicted(verdict), *sentences.would_evict(verdict)):
        remedy = ("Mi would do (gpufence.io/memory or its request).", "let it use less.")

        assert any(words in notice.message for words in remedy)
        assert Anchor.EVICTED is notice.anchor


@examples(30)
@given(st.tuples(amounts, amounts), st.sampled_from(Outcome), st.integers(1, 4))
@example((LARGEST, LARGEST), Outcome.EVICT, 4)
def test_a_first_sentence_is_short(amounts: tuple[int, int], outcome: Outcome, count: int) -> None:
    """At most 160 characters, names not counted: what a list of Events shows of each."""
    for notice in said_of(verdict_of("a", "b", amounts, outcome, count), "b"):
        first, _, _ = notice.message.partition(". ")

        assert len(first) < MOST_FIRST


def notice_name(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)
