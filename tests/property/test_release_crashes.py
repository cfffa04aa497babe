"""
A release that is cut short anywhere, or done by two at once, ends in a state that agrees with
itself.
"""

from collections.abc import Iterator
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from controller.model import ClusterState, ReleaseRules
from gpufence import names
from gpufence.idle import ReleasePhase, WakeBy, read_note
from tests.support.release import (
    NOW,
    WORDS,
    Api,
    ConflictError,
    Leader,
    Scaling,
    Stored,
    cluster,
    idle_pod,
    owner_state,
    pod_state,
    waiting_pod,
)
from tests.support.running import examples

BEFORE = 2
HASTY = ReleaseRules(
    notice_seconds=0, warm_up_seconds=0, peace_seconds=0, free_seconds=0, waiting_seconds=1
)
NEVER_BACK = WORDS
BACK_WHEN_FREE = WORDS._replace(wake=WakeBy.WHEN_FREE)
JOB = waiting_pod(requests={names.NVIDIA_GPU: 2})

LEADERS = ["pass"] * 4 + ["step"] * 8 + ["crash", "look", "look", "look"]
OTHERS = ["hand", "wait", "job", "kubectl"]
actions = st.lists(
    st.tuples(st.sampled_from(LEADERS + OTHERS), st.integers(0, 2), st.integers(0, 4)),
    min_size=5,
    max_size=80,
)


skewed = st.tuples(*[st.sampled_from([-86400.0, -3600.0, 0.0, 3600.0, 86400.0])] * 2)


class Stage:
    """
    An owner that has been idle for long, and two leaders at once that look at it and act at
    different speeds and by clocks of their own, of which each may end between any two calls of the
    API.
    """

    def __init__(self, *, comes_back: bool, skews: tuple[float, float] = (0.0, 0.0)) -> None:
        self.skews = skews
        words = BACK_WHEN_FREE if comes_back else NEVER_BACK
        pods = [idle_pod(f"worker-{place}", minutes=600) for place in range(BEFORE)]
        self.owner = owner_state(*pods, words=words)
        self.busy = [pod_state(pod.name, idle="False", owner=pod.owner) for pod in pods]
        self.api = Api({self.owner.key: Stored(self.owner.uid, 1, BEFORE)})
        self.leaders = [Leader(self.api, HASTY), Leader(self.api, HASTY)]
        self.running: list[Iterator[str]] = [iter(()), iter(()), iter(())]
        self.now = NOW
        self.job = comes_back
        self.world = self.look()

    def look(self, *, busy: bool = False) -> ClusterState:
        """Return the cluster as it is now."""
        owner = self.api.seen(self.owner)
        pods = tuple(self.busy) if busy else self.owner.pods
        owner = owner._replace(pods=pods if owner.replicas else ())
        return cluster(owner, pods=[JOB] if self.job else [], now=self.now)

    def do(self, action: str, which: int, number: int) -> None:
        """
        Let one thing happen; `which` is a leader, or 2, which is a person at the command line.
        """
        if action == "pass" and which < len(self.leaders):
            leader = self.leaders[which]
            world = self.world._replace(now=self.world.now + self.skews[which])
            acts = leader.decide(world)
            self.running[which] = (step for act in acts for step in leader.steps(act, world, None))
        elif action == "step":
            next(self.running[which], None)
        elif action == "crash":
            self.running[which] = iter(())
            if which < len(self.leaders):
                self.leaders[which].forget()
        elif action == "look":
            self.world = self.look()
        elif action == "hand":
            self.api.scale_by_hand(self.owner.key, number)
        elif action == "kubectl":
            self.running[2] = self.wake(self.now)
        elif action == "wait":
            self.now += 200.0 * number
        else:
            self.job = not self.job

    def wake(self, now: float) -> Iterator[str]:
        """Bring the owner back as `kubectl gpufence wake` does: note, replicas."""
        owner = self.api.seen(self.owner)
        if owner.note is None or owner.replicas != 0:
            return
        note = owner.note._replace(phase=ReleasePhase.WAKING, woken_at=now, woken_by="kubectl")
        with suppress(ConflictError):
            version = self.api.annotate(owner.key, owner.uid, owner.version, note)
            yield "noted"
            self.api.scale(owner.key, owner.uid, version, note.replicas)
            yield "scaled"

    def settle(self) -> None:
        """Let one new leader come to rest, while the pods work."""
        self.job = False
        leader = Leader(self.api, HASTY)
        for _ in range(6):
            self.now += 60
            leader.act(self.look(busy=True))


@examples(200)
@given(history=actions, comes_back=st.booleans(), skews=skewed)
def test_every_history_ends_in_agreement(
    history: list[tuple[str, int, int]], skews: tuple[float, float], *, comes_back: bool
) -> None:
    """
    Each scaling was noted before, and nothing is scaled twice, however wrong the clocks are; a new
    leader leaves an owner released with its replicas noted, or back, or as its people had it.
    """
    stage = Stage(comes_back=comes_back, skews=skews)
    for action in history:
        stage.do(*action)
    stage.settle()
    stored = stage.api.owners[stage.owner.key]
    note = read_note(stored.note) if stored.note else None
    last: Scaling | None = stage.api.scalings[-1] if stage.api.scalings else None

    for scaling in stage.api.scalings:
        if scaling.by == "controller":
            assert_noted(scaling)
    assert note is None or note.phase in {ReleasePhase.RELEASED, ReleasePhase.WOKEN}
    if stored.replicas:
        assert note is None or note.phase is ReleasePhase.WOKEN
    elif last is not None and last.by == "controller":
        assert note is not None
        assert ReleasePhase.RELEASED is note.phase
        assert last.before == note.replicas


def assert_noted(scaling: Scaling) -> None:
    """The note that stood there says what there was."""
    note = read_note(scaling.note)

    assert scaling.before != scaling.after
    assert (ReleasePhase.RELEASING if scaling.after == 0 else ReleasePhase.WAKING) is note.phase
    assert max(scaling.before, scaling.after) == note.replicas
    assert 0 == min(scaling.before, scaling.after)


@given(st.integers(0, 3))
def test_a_crash_after_any_call_loses_nothing(calls: int) -> None:
    """Where the first leader ends, the second finds what was meant."""
    stage = Stage(comes_back=False)
    stage.do("pass", 0, 0)
    stage.do("pass", 0, 0)
    for _ in range(calls):
        stage.do("step", 0, 0)
    stage.do("crash", 0, 0)
    stage.settle()
    stored = stage.api.owners[stage.owner.key]

    assert (0 if calls > 1 else BEFORE) == stored.replicas
    assert (calls > 1) == bool(stored.note)
