"""Looking again and again, at many agents, and at addresses, past the API server."""

import threading
from pathlib import Path

import pytest

from gpufence.idle import OwnerRelease, OwnerReleases, write_owners
from gpufence.names import PROFILE_GROUP, PROFILES
from gpufence.need import write_need
from gpufence.need.profile import write_status
from gpufence.snapshot import CUTS, PodActivityRow, write_snapshot
from kube import ForbiddenError
from kubectl_gpufence.agents import MOST_ASKED
from kubectl_gpufence.cluster_view import NodeAgent, SeenObjects
from kubectl_gpufence.live import AGENT_SECONDS, REST_SECONDS, CachedAnswer, LiveLooks
from kubectl_gpufence.reader import AddressError, ClusterReader, page, reading
from kubectl_gpufence.verbs import parse
from tests.support.builders import NEED_KEY, need_summary, node_need, owner_need
from tests.support.golden import assert_cases
from tests.support.plugin import (
    AGENT,
    DENIED,
    NODE,
    PODS,
    SYSTEM,
    Asked,
    Desk,
    agent_pod,
    answered,
    listed,
    pod_row,
    raw_node,
    raw_pod,
    snapshot,
)
from tests.support.servers import Answer, Exchange, hang, reply

FILES = Path(__file__).parents[2] / "golden" / "plugin" / "rare"


def page_of(releases: OwnerReleases) -> Answer:
    return reply(write_owners(releases).encode())


class Watch:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def of_pods(reader: ClusterReader) -> SeenObjects:
    return reader.objects_of_pods("team-a", "")


def test_an_agent_that_hangs_is_left_alone_for_a_while(desk: Desk) -> None:
    """
    It costs one look its patience, then it is unknown at once, and is asked again later, the more
    seldom the longer it hangs.
    """
    desk.get(AGENT, hang())
    clock = Watch()
    call = parse(["top", "--request-timeout", "1100ms"])
    asked = []
    with reading(call, desk.environ, print) as reader:
        live = LiveLooks(reader, of_pods, clock)
        for seconds in (0.0, 1.0, REST_SECONDS, 2 * REST_SECONDS - 1.0, 2.0):
            clock.now += seconds
            cluster = live.look()
            asked.append(len(desk.server.seen(f"GET {AGENT}")))

            assert "it does not answer in time" == cluster.agents["gpu-1"].trouble
            assert 1 == len([note for note in cluster.notes if "in time" in note])

    assert [1, 1, 2, 2, 3] == asked


def test_an_agent_that_is_gone_is_forgotten(desk: Desk) -> None:
    """Its successor is asked at once, and one that answers is asked at each look."""
    desk.server.on(f"GET {AGENT}", hang())
    desk.server.on(
        f"GET {SYSTEM}", listed(agent_pod()), listed(agent_pod("y")), listed(agent_pod())
    )
    clock = Watch()
    call = parse(["top", "--request-timeout", "1100ms"])
    with reading(call, desk.environ, print) as reader:
        live = LiveLooks(reader, of_pods, clock)
        first, second = live.look(), live.look()
        live.look()

    assert ("gpufence-agent-x", "y") == (first.agents["gpu-1"].pod, second.agents["gpu-1"].pod)
    assert 2 == len(desk.server.seen(f"GET {AGENT}"))


def test_no_agent_is_waited_for_as_long_as_by_a_single_look(desk: Desk) -> None:
    """A page that is looked at waits for nobody for long, and says nothing while it does."""
    with reading(parse(["top"]), desk.environ, pytest.fail) as reader:
        live = LiveLooks(reader, of_pods)

        assert live.reader.agent_seconds == AGENT_SECONDS
        live.reader.progress("waiting")


def test_what_cannot_be_read_any_longer_is_old(desk: Desk) -> None:
    """The pods stay, with a note; before the first answer there is nothing to stay."""
    desk.server.on(f"GET {PODS}", listed(raw_pod()), DENIED)
    with reading(parse(["top"]), desk.environ, print) as reader:
        live = LiveLooks(reader, of_pods, Watch())
        live.look()
        cluster = live.look()

        assert ["trainer-0"] == [pod.name for pod in cluster.pods]
        assert any(note.startswith("this is an old look: GET") for note in cluster.notes)
        with pytest.raises(ForbiddenError):
            LiveLooks(reader, of_pods, Watch()).look()


def test_lists_are_read_the_less_often_the_longer_they_take() -> None:
    """A cluster whose lists take a second is not asked for them every second."""
    clock, read = Watch(), []

    def slow() -> NodeAgent:
        clock.now += 1.0
        read.append(clock.now)
        return NodeAgent("", "")

    answer = CachedAnswer(slow, 2.0, clock)
    for _ in range(25):
        answer.get()
        clock.now += 1.0

    assert [101.0, 112.0, 123.0] == read


NODES = 4 * MOST_ASKED


class Agents:
    """The agents of many nodes: what each was asked for, and over which connections."""

    def __init__(self, desk: Desk, *, older: bool = False) -> None:
        self._lock = threading.Lock()
        self._parts = {"": write_snapshot(snapshot())}
        if not older:
            self._parts |= {cut.name: write_snapshot(snapshot(), cut) for cut in CUTS}
        self.asked: list[str] = []
        self.connections: set[object] = set()
        names = [(f"agent-{number}", f"gpu-{number}") for number in range(NODES)]
        desk.get(SYSTEM, listed(*(agent_pod(name, node) for name, node in names)))
        desk.get("/api/v1/nodes", listed(*(raw_node(name=node) for _, node in names)))
        for name, _ in names:
            desk.get(f"{SYSTEM}/{name}:8080/proxy/v1/snapshot", self._answer)

    def _answer(self, exchange: Exchange) -> None:
        part = exchange.path.partition("?only=")[2]
        with self._lock:
            self.asked.append(part)
            self.connections.add(exchange.client_address)
        reply(self._parts.get(part, self._parts[""]).encode())(exchange)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("top", "nodes"), "outlines"),
        (("top", "cards"), "outlines"),
        (("top", "-A"), "cards-and-pods"),
    ],
)
def test_each_agent_is_asked_once_for_what_is_shown(
    desk: Desk, arguments: tuple[str, ...], part: str
) -> None:
    """No more connections are made than agents are asked at the same time, and one for lists."""
    agents = Agents(desk)
    said = desk.run(*arguments)

    assert (0, NODES * [part]) == (said.code, agents.asked)
    assert len(agents.connections) <= MOST_ASKED + 1


@pytest.mark.parametrize("arguments", [("top", "nodes"), ("top", "-A")])
def test_older_agents_say_everything_and_show_the_same(
    desk: Desk, arguments: tuple[str, ...]
) -> None:
    """What nobody shows of it is left by the plugin."""
    Agents(desk, older=True)
    older = desk.run(*arguments)
    Agents(desk)

    assert older == desk.run(*arguments)


WORKER = OwnerRelease("team-a", "apps/v1", "Deployment", "worker", state="released")
AWAY = OwnerReleases(leader=True, at=0.0, brake="the API server is away", owners=(WORKER,))
NO_KINDS = {"/apis": reply({"groups": []})}
AT_ADDRESSES: dict[str, Asked] = {
    "a controller": ("idle --controller SERVER", {**NO_KINDS, "/v1/owners": page_of(AWAY)}),
    "a page that is none": (
        *("idle --controller SERVER", {**NO_KINDS, "/v1/owners": reply(b"<html>")}),
    ),
    "no controller leads": (
        "idle --controller SERVER",
        {**NO_KINDS, "/v1/owners": page_of(OwnerReleases(leader=False, at=0.0))},
    ),
}


def test_the_controller_is_asked_at_its_address(tmp_path: Path) -> None:
    """Its page is read past the API server; without it what agents say is shown all the same."""
    assert_cases(FILES / "addresses.txt", answered(tmp_path, AT_ADDRESSES))


IDLE_POD = pod_row(activity=PodActivityRow("idle", 763.0, "NoKernels"))
SOON = WORKER._replace(state="idle", rung="release", deadline=1_800_000_000.0, why="all idle")
KEPT = WORKER._replace(state="kept", why="it is to be kept until 2030-01-01T00:00:00Z")
LEADS = OwnerReleases(leader=True, at=0.0)
KEEP = "Its owner is released (scaled to zero) at 2027-01-15T08:00:00Z if it stays idle: `kubectl"
FATES = {
    KEEP: page_of(LEADS._replace(owners=(KEPT._replace(name="other"), SOON))),
    "Its owner is not released: it is to be kept until 2030": page_of(
        LEADS._replace(owners=(KEPT,))
    ),
    "Its owner is not released: all idle": page_of(
        LEADS._replace(owners=(SOON._replace(rung="warn"),))
    ),
    "No owner is released at the moment: the API server is away.": page_of(
        AWAY._replace(owners=(SOON,))
    ),
    "WHAT TO DO": page_of(LEADS._replace(owners=(KEPT._replace(state="busy"),))),
    "note: whether ReplicaSet/worker-7d9f is released is not known": reply(b"<html>"),
}


@pytest.mark.parametrize("expected", FATES)
def test_an_idle_pod_hears_what_becomes_of_its_owner(desk: Desk, expected: str) -> None:
    """The controller is asked where a pod is idle, and says whether its owner is released."""
    raw = raw_pod()
    owner = {"kind": "ReplicaSet", "name": "worker-7d9f", "uid": "r", "controller": True}
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", **owner}]
    desk.get(f"{PODS}/trainer-0", reply(raw))
    desk.get(AGENT, reply(write_snapshot(snapshot(IDLE_POD)).encode()))
    desk.get("/v1/owners", FATES[expected])
    said = desk.run("explain", "trainer-0", "--controller", desk.server.url)

    assert expected in " ".join((said.out + said.err).split())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (listed(agent_pod("controller")), "kubectl gpufence wake -n team-a deployment/worker"),
        (listed(), "Create it again"),
        (DENIED, "whether Deployment/worker is released was not asked: you may not list pods"),
    ],
    ids=["controller", "none", "denied"],
)
def test_a_released_owner_is_known_without_its_events(
    desk: Desk, answer: Answer, expected: str
) -> None:
    """They are kept for an hour; where the controller may not be asked, that is said."""
    apps = "/apis/apps/v1"
    kind = {"name": "deployments", "kind": "Deployment", "namespaced": True}
    desk.get("/apis", reply({"groups": [{"preferredVersion": {"groupVersion": "apps/v1"}}]}))
    desk.get(apps, reply({"resources": [{**kind, "shortNames": ["deploy"]}]}))
    worker = {"name": "worker", "namespace": "team-a", "uid": "d", "resourceVersion": "1"}
    desk.get(f"{apps}/namespaces/team-a/deployments/worker", reply({"metadata": worker}))
    desk.get(SYSTEM, answer)
    desk.get(f"{SYSTEM}/controller:8080/proxy/v1/owners", page_of(LEADS._replace(owners=(WORKER,))))
    said = desk.run("explain", "deploy/worker")

    assert expected in " ".join((said.out + said.err).split())


def test_the_environment_names_agents_too(desk: Desk) -> None:
    """Several stand in one variable, and a call that names some itself leaves it aside."""
    desk.environ["GPUFENCE_AGENTS"] = f"other=http://127.0.0.1:9, {NODE}={desk.server.url}"
    desk.get("/v1/snapshot", reply(write_snapshot(snapshot(version="9.9.9")).encode()))

    found = desk.run("top", "nodes", "-o", "json").json

    assert ["1 agent (other)"] == [note.partition(":")[0] for note in found["notes"]]


def test_an_address_that_does_not_answer_is_named() -> None:
    """Nobody there is an error with the address in it."""
    with pytest.raises(
        AddressError, match=r"/v1/owners at http://127\.0\.0\.1:9: Connection refused"
    ):
        page("http://127.0.0.1:9/v1/owners", 2.0)


def test_what_is_newer_than_the_profiles_is_noted(desk: Desk) -> None:
    """The page of days has what agents know by now; the table, what the controller has written."""
    told = owner_need(1), owner_need(1, NEED_KEY._replace(name="newcomer"))
    profile = {
        "metadata": {"namespace": "vision", "name": "deployment-classifier", "generation": 1},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}},
        "status": write_status([need_summary()], 1),
    }
    desk.get(f"/apis/{PROFILE_GROUP}/{PROFILES}", listed(profile))
    desk.get(AGENT.replace("snapshot", "need"), reply(write_need(node_need(*told)).encode()))
    said = desk.run("recommend", "-A", "-o", "html")

    assert "note: 1 owner measured, and in no profile yet: vision/newcomer\n" in said.err
