"""What no history of owners, words and switches makes the controller do."""

from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from controller.model import Act, ClusterState, OwnerState, PodState, ReleaseRules, Step, Way
from gpufence import names
from gpufence.idle import IdleRung, IdleWords, WakeBy
from tests.support.release import (
    NOW,
    Api,
    Leader,
    Stored,
    cluster,
    idle_pod,
    node_room,
    owner_state,
    waiting_pod,
)
from tests.support.running import examples

RULES = ReleaseRules(
    warm_up_seconds=120, peace_seconds=240, free_seconds=60, suspend_seconds=300, per_minute=1
)
PASS_SECONDS = 10.0
JOB = waiting_pod(requests={names.NVIDIA_GPU: 3}, seconds=3600)


@dataclass(frozen=True)
class Change:
    """What happens before a pass: to the pods of one owner, to the cluster, to the leader."""

    owner: int
    status: str
    rung: IdleRung | None
    fresh: bool
    job: bool
    crash: bool
    by_hand: int | None
    passes: int


words = st.builds(
    IdleWords,
    st.sampled_from([60.0, 120.0, 600.0]),
    st.sampled_from([60.0]),
    st.one_of(st.none(), st.floats(NOW, NOW + 1200)),
    st.sampled_from(WakeBy),
)
rungs = st.sampled_from([None, *[IdleRung.RELEASE] * 5, *IdleRung])
changes = st.builds(
    Change,
    st.integers(0, 4),
    st.sampled_from(["True"] * 5 + ["False", "Unknown", ""]),
    rungs,
    st.sampled_from([True] * 6 + [False]),
    st.booleans(),
    st.sampled_from([False] * 8 + [True]),
    st.sampled_from([None] * 8 + [0, 1, 2]),
    st.integers(1, 12),
)


@dataclass(frozen=True)
class Start:
    """
    An owner at the beginning: for how many minutes each of its pods has been idle, and its words.
    """

    minutes: tuple[int, ...]
    way: Way
    rung: IdleRung | None
    words: IdleWords

    def owner(self, place: int) -> OwnerState:
        name = f"w{place}"
        pods = [idle_pod(f"{name}-{i}", minutes=each) for i, each in enumerate(self.minutes)]
        return owner_state(*pods, name=name, way=self.way, rung=self.rung, words=self.words)


starts = st.builds(
    Start,
    st.lists(st.integers(1, 90), min_size=1, max_size=2).map(tuple),
    st.sampled_from([Way.SCALE] * 4 + [Way.NOTEBOOK, Way.NEVER]),
    rungs,
    words,
)
History: TypeAlias = tuple[list[Start], list[Change]]
histories: st.SearchStrategy[History] = st.tuples(
    st.lists(starts, min_size=5, max_size=5), st.lists(changes, min_size=3, max_size=12)
)


class Town:
    """Five owners whose pods change their minds, and a leader that sees all of it at once."""

    def __init__(self, history: History) -> None:
        starts, changes = history
        self.owners = [start.owner(place) for place, start in enumerate(starts)]
        self.now = NOW
        self.job = False
        self.acts: list[tuple[float, Act, ClusterState]] = []
        self.api = Api({each.key: Stored(each.uid, 1, len(each.pods)) for each in self.owners})
        self.leader = Leader(self.api, RULES)
        self.young: dict[int, float] = {}
        for change in changes:
            self.change(change)

    def world(self, *, fresh: bool) -> ClusterState:
        """Return the cluster as it is now; an owner without replicas has no pods."""
        seen = [self.api.seen(owner) for owner in self.owners]
        living = [owner if owner.replicas else owner._replace(pods=()) for owner in seen]
        pods = [JOB] if self.job else []
        nodes = [node_room(cards=10)]
        return cluster(*living, pods=pods, nodes=nodes, now=self.now, fresh=fresh)

    def change(self, change: Change) -> None:
        place = change.owner
        owner = self.owners[place]
        pods = [self._said(pod, change.status) for pod in owner.pods]
        self.owners[place] = owner._replace(pods=tuple(pods), rung=change.rung)
        self.job = change.job
        if change.by_hand is not None:
            self.api.scale_by_hand(owner.key, change.by_hand)
        if change.crash:
            self.leader.forget()
        for _ in range(change.passes):
            self.now += PASS_SECONDS
            self.look(fresh=change.fresh)

    def look(self, *, fresh: bool) -> None:
        world = self.world(fresh=fresh)
        self.acts += [(self.now, act, world) for act in self.leader.act(world)]
        for place, owner in enumerate(self.owners):
            if not self.api.owners[owner.key].replicas:
                self.young[place] = self.now
            elif place in self.young:  # its new pods begin to live
                pods = [pod._replace(ready_at=self.now, idle="") for pod in owner.pods]
                self.owners[place] = owner._replace(pods=tuple(pods))
                del self.young[place]

    def _said(self, pod: PodState, status: str) -> PodState:
        return pod if pod.idle == status else pod._replace(idle=status, idle_at=self.now)

    def of(self, *steps: Step) -> list[tuple[float, Act, ClusterState]]:
        return [each for each in self.acts if each[1].step in steps]


@examples(40)
@given(histories)
def test_no_history_breaks_a_rule(history: History) -> None:
    """Each release was announced, due and noted, one in a minute, and nothing is done unsaid."""
    town = Town(history)
    released = town.of(Step.RELEASE)
    times = [now for now, *_ in released]
    for now, act, world in released:
        assert_due(now, act, world)
        assert_told(town, now, act, world)
        assert act.note is not None
        assert world.owners[act.key].replicas == act.note.replicas
    for _, act, world in town.acts:
        assert_said(act, world)

    assert all(1 >= sum(0 <= later - now < 60 for later in times) for now in times)


def assert_due(now: float, act: Act, world: ClusterState) -> None:
    """Its pods were idle for its time, nothing kept it, a pod waited for one that comes back."""
    owner = world.owners[act.key]

    assert {"True"} == {pod.idle for pod in owner.pods}
    assert owner.rung is IdleRung.RELEASE
    assert owner.way is not Way.NEVER
    assert owner.words is not None
    assert (owner.words.keep_until or 0.0) <= now
    assert JOB in world.pods or act.threshold_seconds == owner.words.after_seconds
    assert act.threshold_seconds <= min(now - (p.idle_at or now) + 60 for p in owner.pods)
    assert all((pod.ready_at or 0.0) + RULES.warm_up_seconds <= now for pod in owner.pods)
    assert owner.note is None or (owner.note.left_alone_until or 0.0) <= now
    assert owner.note is None or (owner.note.woken_at or 0.0) + RULES.peace_seconds <= now


def assert_told(town: Town, now: float, act: Act, world: ClusterState) -> None:
    """Since it was announced it has had its notice, and its pods were idle all the while."""
    lead = min(RULES.notice_seconds, act.threshold_seconds / 2)
    told = [at for at, other, _ in town.of(Step.ANNOUNCE) if other.key == act.key and at <= now]
    since = max((pod.idle_at or now) for pod in world.owners[act.key].pods)

    assert any(since - 60 <= at <= now - lead for at in told)


def assert_said(act: Act, world: ClusterState) -> None:
    """Nothing is done while news are old, or announced where the namespace only reports."""
    owner = world.owners[act.key]

    assert world.fresh
    if act.step is Step.ANNOUNCE:
        assert owner.rung is not None
        assert owner.rung >= IdleRung.WARN
    if act.step is Step.WAKE:
        assert owner.note is not None
