"""How long agents are waited for, and what is kept of what they say."""

from time import sleep

import pytest

from gpufence.snapshot import CARD_ROWS, OUTLINES, write_snapshot
from kube import UnreachableError
from kubectl_gpufence.agents import AgentPatience, ask_agents
from kubectl_gpufence.pods import StatusPod
from tests.support.plugin import pod_row, snapshot, use_row


def answer(seconds: float = 0.0) -> str:
    sleep(seconds)
    return ""


def quietly(text: str) -> None:
    del text


def answering(seconds: float = 0.0) -> AgentPatience:
    """Ask enough agents that take so long."""
    patience = AgentPatience()
    for _ in range(AgentPatience.ENOUGH):
        patience.ask(lambda _: answer(seconds))
    return patience


def test_the_first_are_given_their_time() -> None:
    """Nobody knows yet how long agents take."""
    patience = AgentPatience()
    for _ in range(AgentPatience.ENOUGH - 1):
        patience.ask(lambda _: "")

    assert AgentPatience.FIRST_SECONDS == patience.seconds


def test_who_takes_much_longer_than_all_others_is_taken_to_hang() -> None:
    """Where agents answer at once, a second is long."""
    assert AgentPatience.LEAST_SECONDS == answering().seconds


def test_slow_agents_make_patient() -> None:
    """Where the way to agents is slow, twenty times as long counts, up to what the first had."""
    assert AgentPatience.LEAST_SECONDS < answering(0.06).seconds < AgentPatience.FIRST_SECONDS
    assert AgentPatience.FIRST_SECONDS == answering(0.16).seconds


def test_no_answer_teaches_nothing() -> None:
    """Those that hang do not make one wait longer for others."""
    patience = answering()

    def hang(seconds: float) -> str:
        raise UnreachableError(f"nothing in {seconds} s")

    with pytest.raises(UnreachableError, match=r"nothing in 1\.0 s"):
        patience.ask(hang)
    assert AgentPatience.LEAST_SECONDS == patience.seconds


def test_of_a_snapshot_only_what_is_wanted_is_kept() -> None:
    """The text of thousands, and rows that nobody shows, have no room."""
    text = write_snapshot(snapshot())

    [whole] = ask_agents([StatusPod("a", "a")], lambda _: text, quietly, None)
    [cards] = ask_agents([StatusPod("a", "a")], lambda _: text, quietly, CARD_ROWS)

    assert (snapshot(), text) == (whole.snapshot, whole.text)
    assert (snapshot().cards, (), ()) == (
        cards.snapshot and cards.snapshot.cards,
        cards.snapshot and cards.snapshot.pods,
        cards.snapshot and cards.snapshot.nobody,
    )
    assert "" == cards.text


def test_tables_of_nodes_keep_which_pods_are_fenced_and_over() -> None:
    """That is all they say of pods."""
    fenced, over = pod_row(), pod_row(use_row(over_seconds=5.0), use_row())
    text = write_snapshot(snapshot(fenced, over))

    [answer] = ask_agents([StatusPod("a", "a")], lambda _: text, quietly, OUTLINES)

    assert answer.snapshot is not None
    assert [("evict", 0), ("evict", 1)] == [
        (pod.mode, len(pod.uses)) for pod in answer.snapshot.pods
    ]
