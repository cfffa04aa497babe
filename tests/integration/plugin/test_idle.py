"""What people see and do about idle GPUs, on a real API server, with their own rights."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from gpufence import names
from gpufence.idle import (
    OwnerRelease,
    OwnerReleases,
    ReleaseNote,
    ReleasePhase,
    read_note,
    write_note,
    write_owners,
)
from gpufence.quantity import GIB
from gpufence.snapshot import PodActivityRow, PodRow, write_snapshot
from gpufence.times import read_moment
from kube import ConflictError, JsonObject, PatchType, group
from kube.discovery import Kinds
from kube.workloads import set_replicas
from kubectl_gpufence.verbs.idle.owners import RefusedError, carefully, named_owner
from simulator.controlplane import User
from tests.integration.plugin.site import SYSTEM, PluginSite
from tests.support import objects
from tests.support.objects import NOTEBOOKS, controlled, define, deployment, undefine
from tests.support.plugin import card_row, pod_row, raw_pod, snapshot, use_row
from tests.support.servers import reply

IDLE = PodActivityRow("idle", 7200.0, "NoKernels", busy_share=0.0)
BUSY = PodActivityRow("busy", 0.0, "Busy", busy_share=1.0)
AT = 1_900_000_000.0
GONE = write_note(ReleaseNote(ReleasePhase.RELEASED, AT, 3, "nobody used it"))
COLLEAGUE = User("colleague", "colleagues")


class Team:
    """The namespace of a site, and owners in it whose pods do what a test says."""

    def __init__(self, site: PluginSite) -> None:
        self.site = site
        self.rows: list[PodRow] = []

    def deploy(self, activity: PodActivityRow = IDLE, replicas: int = 1, note: str = "") -> str:
        """Make a Deployment, the ReplicaSet that its controller would make, and one pod of that."""
        name = f"w-{uuid4().hex[:6]}"
        made = deployment(name)
        made["spec"]["replicas"] = replicas
        if note:
            made["metadata"]["annotations"] = {names.RELEASED: note}
        top = self.site.admin.post(self.path("deployments"), made)
        below = controlled({**deployment(f"{name}-1"), "kind": "ReplicaSet"}, top)
        middle = self.site.admin.post(self.path("replicasets"), below)
        if replicas:
            self.run(controlled(raw_pod(name=f"{name}-1-x"), middle), activity)
        return name

    def run(self, item: JsonObject, activity: PodActivityRow) -> None:
        made = self.site.create(item)
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        use = use_row(2 * GIB)
        row = pod_row(use, uid=uid, name=name, namespace=self.site.team, activity=activity)
        self.rows.append(row)
        said = snapshot(*self.rows, node=self.site.node, cards=(card_row(),))
        self.site.standin.on("GET /v1/snapshot", reply(write_snapshot(said).encode()))

    def path(self, plural: str, *more: str) -> str:
        return group("apps/v1", "namespaces", self.site.team, plural, *more)

    def found(self, name: str) -> JsonObject:
        return self.site.admin.get(self.path("deployments", name))

    def replicas(self, name: str) -> int:
        return int(self.found(name)["spec"]["replicas"])

    def note(self, name: str) -> ReleaseNote:
        return read_note(self.found(name)["metadata"]["annotations"][names.RELEASED])

    def do(self, *arguments: str, user: str | User = "admin") -> str:
        """Run a verb that goes well, and return what it says."""
        done = self.site.run(*arguments, "-n", self.site.team, user=user)
        assert 0 == done.code, done.err
        return done.out

    def refused(self, *arguments: str) -> str:
        done = self.site.run(*arguments, "-n", self.site.team)
        assert 1 == done.code, done.out
        return done.err

    def lines(self, *arguments: str) -> dict[str, Any]:
        said = self.site.json("idle", "-n", self.site.team, *arguments)
        return {item["name"]: item for item in said["owners"]}


@pytest.fixture(scope="module")
def team(site: PluginSite) -> Team:
    return Team(site)


@pytest.fixture(scope="module")
def notebooks(site: PluginSite) -> Iterator[None]:
    define(site.admin, NOTEBOOKS)
    yield
    undefine(site.admin, NOTEBOOKS)


def test_pods_are_shown_by_their_topmost_owner(team: Team) -> None:
    """A pod of a ReplicaSet counts for its Deployment; without a controller a note says so."""
    name = team.deploy()
    found = team.lines()[name]
    done = team.site.run("idle", "-n", team.site.team)

    assert ("apps/v1", "Deployment", 1, "idle", 7200.0, [f"{name}-1-x"], "2048Mi", 4.0) == tuple(
        found[key]
        for key in ("apiVersion", "kind", "replicas", "state", "idle", "pods", "held", "gibHours")
    )
    assert ["OWNER", "PODS", "STATE", "IDLE", "HELD", "GIB-H", "RELEASE", "WAITING"] == (
        done.out.splitlines()[0].split()
    )
    assert "note: no controller runs in this cluster" in done.err


def test_the_controller_says_what_it_will_do(team: Team) -> None:
    """Its page is read through the API server's proxy as those of agents are."""
    name = team.deploy()
    said = OwnerRelease(
        team.site.team, "apps/v1", "Deployment", name, state="idle", rung="release", replicas=1
    )._replace(deadline=AT + 30, why="somebody waits", waiters=("other/job",))
    page = OwnerReleases(leader=True, at=AT, owners=(said,))
    team.site.standin.on("GET /v1/owners", reply(write_owners(page).encode()))
    made = objects.pod("gpufence-controller-0")
    made["metadata"]["labels"] = {"app.kubernetes.io/name": names.CONTROLLER}
    port = {"name": "status", "containerPort": team.site.standin.port}
    made["spec"] = {
        "nodeName": team.site.node,
        "containers": [{"name": "controller", "image": "none", "ports": [port]}],
    }
    with suppress(ConflictError):
        team.site.admin.post(f"{SYSTEM}/pods", made)
    team.site.report_ready(f"{SYSTEM}/pods/gpufence-controller-0")
    try:
        row = next(
            line for line in team.do("idle").splitlines() if line.startswith(f"deployment/{name}")
        )
        plan = team.do("release", f"deploy/{name}", "--dry-run")
    finally:
        team.site.drop(f"{SYSTEM}/pods/gpufence-controller-0", {"gracePeriodSeconds": 0})

    assert row.endswith("in 30s   other/job")
    assert "    somebody waits" == plan.splitlines()[2]
    assert 1 == team.replicas(name)


def test_an_owner_is_kept_by_any_of_its_names(team: Team) -> None:
    """The moment is on the owner, also where a pod was named; it can be taken back, once."""
    name = team.deploy()
    until = "2099-01-02T03:04:05Z"
    for form in ("deploy/{}", "deployments.apps/{}", "{}-1-x", "pod/{}-1-x"):
        said = team.do("keep", form.format(name), "--until", until)
        kept = team.found(name)["metadata"]["annotations"][names.KEEP_UNTIL]
        first = team.do("keep", f"deploy/{name}", "--clear")

        assert (until, f"Deployment {team.site.team}/{name} is kept until {until}\n") == (
            kept,
            said,
        )
        assert "not kept any longer\n" == first[-20:]
    assert names.KEEP_UNTIL not in team.found(name)["metadata"].get("annotations", {})
    assert "nothing to be done\n" == team.do("keep", f"deploy/{name}", "--clear")[-19:]
    team.do("keep", f"deploy/{name}", "--for", "8h")
    at = read_moment(team.found(name)["metadata"]["annotations"][names.KEEP_UNTIL], "until")

    assert 7 * 3600 < at - time.time() <= 8 * 3600


def test_what_cannot_be_is_named(team: Team) -> None:
    """An error says which word is wrong and what to write."""
    name = team.deploy()

    assert "there is no Deployment nobody" in team.refused("keep", "deploy/nobody", "--for", "8h")
    assert 'knows no kind "barns"' in team.refused("wake", f"barns/{name}")
    assert "there is no Pod nobody" in team.refused("release", "nobody")


def test_a_bare_pod_has_no_owner(team: Team) -> None:
    """A pod that no owner made has no replicas to change."""
    team.run(raw_pod(name="bare"), IDLE)

    assert "has no replicas that could be changed" in team.refused("release", "bare")


def test_release_and_wake(team: Team) -> None:
    """An idle owner goes to no replicas with a note of what it had, and comes back to that."""
    name = team.deploy(replicas=3)
    said = team.do("release", f"deploy/{name}")
    gone = team.note(name)

    assert f"`kubectl gpufence wake -n {team.site.team} deployment/{name}` brings it back" in said
    assert (0, ReleasePhase.RELEASED, 3) == (team.replicas(name), gone.phase, gone.replicas)
    assert "nothing to be done" in team.do("release", f"deploy/{name}")

    said = team.do("wake", f"deploy/{name}")
    back = team.note(name)

    assert "is back: has 3 replicas" in said
    assert (3, ReleasePhase.WOKEN, "kubectl") == (team.replicas(name), back.phase, back.woken_by)
    assert "nothing to be done" in team.do("wake", f"deploy/{name}")


def test_a_busy_owner_is_not_released(team: Team) -> None:
    """What agents call busy stays, unless somebody insists."""
    name = team.deploy(BUSY)

    assert f"pod {name}-1-x is busy; --even-if-busy" in team.refused("release", f"deploy/{name}")
    assert 1 == team.replicas(name)
    team.do("release", f"deploy/{name}", "--even-if-busy")

    assert 0 == team.replicas(name)


def test_who_is_scaled_by_others_is_not_released(team: Team) -> None:
    """
    An HPA would bring back what is taken, or never again: it is named. What one of another group
    scales is another owner, though it is called the same.
    """
    name = team.deploy()
    scale(team, name, "example.com/v1")
    said = team.do("release", f"deploy/{name}")
    team.do("wake", f"deploy/{name}")
    scale(team, name, "apps/v1")

    assert "is released" in said
    assert "HorizontalPodAutoscaler hpa-apps scales it" in team.refused("release", f"deploy/{name}")


def scale(team: Team, name: str, api_version: str) -> None:
    """Let an HPA scale a Deployment of this group."""
    target = {"apiVersion": api_version, "kind": "Deployment", "name": name}
    named = {"name": f"hpa-{api_version.partition('/')[0]}"}
    path = group("autoscaling/v2", "namespaces", team.site.team, "horizontalpodautoscalers")
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    team.site.admin.post(path, {"metadata": named, "spec": spec})


def test_an_unknown_pod_is_not_released(team: Team) -> None:
    """A pod of which its agent says nothing is not idle."""
    name = team.deploy()
    team.rows[-1] = team.rows[-1]._replace(activity=None)
    team.run(raw_pod(name=f"beside-{name}"), IDLE)

    assert "is unknown" in team.refused("release", f"deploy/{name}")


def test_what_somebody_else_brought_back_is_written_down(team: Team) -> None:
    """Waking an owner that has its replicas again closes its note and changes nothing else."""
    name = team.deploy(note=GONE)

    assert "has 1 replica already" in team.do("wake", f"deploy/{name}")
    assert (ReleasePhase.WOKEN, "kubectl") == (team.note(name).phase, team.note(name).woken_by)
    assert 1 == team.replicas(name)


@pytest.mark.parametrize("note", ["", "{"])
def test_without_a_note_replicas_must_be_named(team: Team, note: str) -> None:
    """Where nobody can read how many there were, a person says it."""
    name = team.deploy(replicas=0, note=note)

    assert "write --replicas N" in team.refused("wake", f"deploy/{name}")
    team.do("wake", f"deploy/{name}", "--replicas", "2")

    assert 2 == team.replicas(name)


@pytest.mark.usefixtures("notebooks")
def test_a_notebook_is_stopped_and_started(team: Team) -> None:
    """Kubeflow's own annotation stops it, and is taken away to start it."""
    path = group("kubeflow.org/v1", "namespaces", team.site.team, "notebooks")
    item = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "mine"}}
    made = team.site.admin.post(path, item)
    team.run(controlled(raw_pod(name="mine-0"), made), IDLE)

    stopped = team.do("release", "notebook/mine")
    annotations = team.site.admin.get(f"{path}/mine")["metadata"]["annotations"]
    started = team.do("wake", "mine-0")

    assert "is stopped" in stopped
    assert -60 < read_moment(annotations[names.STOPPED], "stopped") - time.time() <= 0
    assert "is back: runs" in started
    assert names.STOPPED not in team.site.admin.get(f"{path}/mine")["metadata"]["annotations"]


def test_everybody_acts_with_his_own_rights(team: Team) -> None:
    """
    Who may look and not scale is refused by the API server, and nothing is changed. Who may not
    look at autoscalers either is told that there may be one.
    """
    name = team.deploy()
    rule = ("--verb=get,list", "--resource=pods,deployments.apps,replicasets.apps")
    team.site.plane.kubectl("create", "role", "colleague", *rule, "-n", team.site.team)
    binding = ("create", "rolebinding", "colleague", "--role=colleague", "--group=colleagues")
    team.site.plane.kubectl(*binding, "-n", team.site.team)
    team.site.wait_until_allowed(COLLEAGUE, "list", "pods", "-n", team.site.team)

    words = ("release", "-n", team.site.team, f"deploy/{name}")
    blind = team.site.run(*words, user=COLLEAGUE)
    done = team.site.run(*words, "--even-if-busy", user=COLLEAGUE)

    assert "you may not list HorizontalPodAutoscalers in namespace" in blind.err
    assert (1, 1) == (done.code, team.replicas(name))
    assert "ask your administrator" in done.err
    assert names.RELEASED not in json.dumps(team.found(name))


def test_a_change_beside_replicas_and_note_is_no_conflict(team: Team) -> None:
    """What an owner's own controller writes all the time does not stop an act."""
    name = team.deploy()
    client = team.site.admin
    owner = named_owner(client, Kinds(client), team.site.team, f"deploy/{name}")
    status = {"status": {"observedGeneration": 7}}
    client.patch(f"{team.path('deployments', name)}/status", status, PatchType.MERGE)
    carefully(client, owner, lambda item: set_replicas(client, item, 0))

    assert 0 == team.replicas(name)


def test_somebody_else_who_scales_is_a_conflict(team: Team) -> None:
    """Replicas that have changed since they were looked at are left as they are."""
    name = team.deploy()
    client = team.site.admin
    owner = named_owner(client, Kinds(client), team.site.team, f"deploy/{name}")
    client.patch(team.path("deployments", name), {"spec": {"replicas": 5}}, PatchType.MERGE)

    with pytest.raises(RefusedError, match="somebody else changes Deployment"):
        carefully(client, owner, lambda item: set_replicas(client, item, 0))

    assert 5 == team.replicas(name)
