"""The plugin on a real API server, with snapshots that come through its pod proxy."""

import json
import signal

import yaml

from gpufence import names
from kube import core
from kubectl_gpufence.reader import page
from kubectl_gpufence.verbs.verify import job_on
from simulator.controlplane import User
from tests.integration.plugin.site import SYSTEM, TENANT, PluginSite
from tests.support import objects
from tests.support.plugin import raw_pod
from tests.support.site import PATIENCE_SECONDS
from tools import ROOT

APPS = "/apis/apps/v1/namespaces/gpufence-system"
MAY_NOT_PROXY = "you may not list pods in gpufence-system"


def test_it_is_a_plugin_of_kubectl(site: PluginSite) -> None:
    """The real kubectl finds it by its name and hands it the arguments."""
    done = site.run_by_kubectl("top", "pods", "-n", site.team)

    assert "" == done.stderr
    assert ["POD", "NODE", "CARD", "LIMIT", "CAP", "USED", "SHARE", "IDLE", "VERDICT"] == (
        done.stdout.splitlines()[0].split()
    )


def test_gpushares_users_find_their_words(site: PluginSite) -> None:
    """
    The real kubectl finds `inspect gpushare` by its name, and the real API server selects its pods.
    """
    done = site.run_by_kubectl("-d", "--used", site.node, verbs=("inspect", "gpushare"))

    assert ("", 0) == (done.stderr, done.returncode)
    assert f"NAME:       {site.node}" == done.stdout.splitlines()[1]
    assert ["early-bird", site.team, "3", "0"] in [
        line.split() for line in done.stdout.splitlines()
    ]


def test_each_verb_reads_what_is_declared_injected_and_measured(site: PluginSite) -> None:
    """Side by side in `top`, with sums in `explain`, in the agent's own words in `inspect`."""
    found = {item["name"]: item for item in site.json("top", "-n", site.team)["pods"]}
    explained = site.run("explain", "-n", site.team, "--sums", "pod/trainer-0")
    inspected = site.run("inspect", site.node)

    assert {
        "trainer-0": ("3072Mi", "2150Mi", "3500Mi"),
        "early-bird": ("3072Mi", None, None),
    } == {name: (item["limit"], item["told"], item["used"]) for name, item in found.items()}
    assert "A = min(0.7 L, L - n C) / n = min(2150Mi, 2560Mi) / 1" in explained.out
    assert "PID 41 in container trainer: 3500Mi" in explained.out
    assert site.node == site.json("inspect", site.node)["node"]
    assert "Xorg" in inspected.out


def about(site: PluginSite, kind: str, name: str, reason: str, **more: str) -> None:
    """Write an Event about an object of the team."""
    uid = {"uid": more.pop("uid")} if "uid" in more else {}
    item = {
        "metadata": {"generateName": f"{name}."},
        "involvedObject": {"kind": kind, "namespace": site.team, "name": name, **uid},
        "reason": reason,
        **more,
    }
    site.admin.post(core("namespaces", site.team, "events"), item)


def test_explain_tells_events_of_the_pod_itself(site: PluginSite) -> None:
    """Not those of an earlier one of its name; of one that is gone they are what is left."""
    pod = site.admin.get(f"/api/v1/namespaces/{site.team}/pods/trainer-0")
    for uid, message in ((pod["metadata"]["uid"], "holds too much"), ("another", "is history")):
        about(site, "Pod", "trainer-0", names.LIMIT_EXCEEDED, uid=uid, message=message)
    about(site, "Pod", "lost-1", names.EVICTED, uid="gone", message="held too much")
    done = site.run("explain", "-n", site.team, "trainer-0")
    left = site.run("explain", "-n", site.team, "lost-1")
    near = site.run("explain", "-n", site.team, "trainer-1")

    assert "GPUMemoryLimitExceeded: holds too much" in done.out
    assert "is history" not in done.out
    assert (0, True) == (left.code, "GPUMemoryEvicted: held too much" in left.out)
    assert (1, True) == (near.code, "did you mean trainer-0?" in near.err)


def test_explain_takes_an_owner(site: PluginSite) -> None:
    """Of a Deployment's pods the one in trouble is explained, and that one was evicted before."""
    apps = f"/apis/apps/v1/namespaces/{site.team}"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": objects.pod("web")["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    made = site.admin.post(f"{apps}/deployments", {"metadata": {"name": "web"}, "spec": spec})
    empty = site.run("explain", "-n", site.team, "deploy/web")
    pod = raw_pod(name="web-1")
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
    ]
    site.create(pod)
    about(site, "ReplicaSet", "web-7d9f", names.EVICTED, lastTimestamp="2026-01-02T03:04:05Z")
    for name, why in (("web-8b9f", "so"), ("web-too-7d9f", "another")):
        said = f"Error creating: gpufence refuses this pod: {why}"
        about(site, "ReplicaSet", name, "FailedCreate", message=said)
    refused = site.run("why", "-n", site.team, "deploy/web").out

    done = site.run("explain", "-n", site.team, "deploy/web")
    site.drop(core("namespaces", site.team, "pods", "web-1"), {"gracePeriodSeconds": 0})
    words = " ".join(done.out.split())

    assert "Deployment web" in empty.out
    assert f"pod {site.team}/web-1: Running" in done.out
    assert "deploy/web lost a pod by eviction, last at 2026-01-02T03:04:05Z" in words
    assert "gpufence refuses this pod: so. In the pod's template, change what the refusal" in words
    assert "another" not in words
    assert f"Deployment/web in namespace {site.team}: pods rejected 1 time, last at" in refused
    assert f"`kubectl gpufence why -n {site.team} deploy/web`" in words


def test_kubectl_completes_names_of_the_cluster(site: PluginSite) -> None:
    """The real kubectl asks `kubectl_complete-gpufence` for what a word may become."""
    done = site.run_by_kubectl("-n", site.team, "trai", verbs=("__complete", "gpufence", "explain"))

    assert ["trainer-0", ":4"] == done.stdout.splitlines()


def test_a_tenant_sees_what_is_declared_and_injected(site: PluginSite) -> None:
    """Who may not ask agents still sees limits and caps, and is told what is missing."""
    rule = ("--verb=get,list", "--resource=pods")
    site.plane.kubectl("create", "role", "tenant", *rule, "-n", site.team)
    binding = ("create", "rolebinding", "tenant", "--role=tenant", "--group=tenants")
    site.plane.kubectl(*binding, "-n", site.team)
    site.wait_until_allowed(TENANT, "list", "pods", "-n", site.team)

    said = site.json("top", "-n", site.team, user=TENANT)

    [trainer] = [item for item in said["pods"] if item["name"] == "trainer-0"]
    assert ("3072Mi", "2150Mi", None) == (trainer["limit"], trainer["told"], trainer["used"])
    assert any(MAY_NOT_PROXY in note for note in said["notes"])


def test_a_reader_who_may_not_proxy_is_told_so(site: PluginSite) -> None:
    """Reading pods everywhere is not the right to ask agents."""
    reader = User("reader", "readers")
    rule = ("--verb=get,list", "--resource=pods")
    site.plane.kubectl("create", "clusterrole", "readers", *rule)
    binding = ("create", "clusterrolebinding", "readers", "--clusterrole=readers")
    site.plane.kubectl(*binding, "--group=readers")
    try:
        site.wait_until_allowed(reader, "list", "pods", "-A")
        said = site.json("top", "-n", site.team, user=reader)
    finally:
        site.plane.kubectl("delete", "clusterrolebinding,clusterrole", "readers")

    assert any("Role gpufence-viewer" in note for note in said["notes"])


def test_nobody_gets_a_sentence_not_a_traceback(site: PluginSite) -> None:
    """Without any right the answer is one line that says which one is missing."""
    done = site.run("top", "-n", site.team, user=User("nobody", "nobodies"))

    assert 1 == done.code
    assert "" == done.out
    assert done.err.startswith("kubectl gpufence: GET ")
    assert "Forbidden" in done.err
    assert 1 == len(done.err.splitlines())


def test_what_is_not_there_is_named(site: PluginSite) -> None:
    """An error says where to look; an argument that cannot be read has another exit code."""
    wrong = site.run("top", "--agents", "nonsense")
    pod = site.run("explain", "-n", site.team, "ghost")
    node = site.run("top", "nodes", "--node", f"{site.node}x")

    assert (2, 1, 1) == (wrong.code, pod.code, node.code)
    assert f"there is no pod ghost in namespace {site.team}" in pod.err
    assert f"there is no node {site.node}x; did you mean {site.node}?" in node.err


def test_doctor_finds_what_is_missing(site: PluginSite) -> None:
    """A cluster with little but an agent has a list of wrongs, each with its remedy, and code 1."""
    done = site.run("doctor", "-o", "json")
    checks = json.loads(done.out)["checks"]

    wrong = [item for item in checks if item["level"] == "wrong"]
    said = " ".join(item["said"] for item in wrong)
    found = " ".join(item["said"] for item in checks if item["level"] in {"wrong", "look"})
    assert 1 == done.code
    assert all(item["remedy"] for item in wrong)
    assert f"{site.team}/early-bird" in found or "the webhook never saw" in found
    for path, text in (
        (f"{APPS}/deployments/gpufence-webhook", "there is no Deployment gpufence-webhook"),
        (f"{SYSTEM}/configmaps/gpufence-policy", "there is no ConfigMap gpufence-policy"),
    ):
        # Other tests of the session may have installed some of it.
        assert site.exists(path) is not (text in said)


def test_ctrl_c_ends_a_watch_without_a_traceback(site: PluginSite) -> None:
    """Whoever watches ends it with Ctrl-C, and that is no error to read about."""
    with site.start("top", "--watch", "-n", site.team) as watching:
        assert watching.stdout is not None
        read = watching.stdout.readline() + watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, told = watching.communicate(timeout=PATIENCE_SECONDS)

    assert "POD" in read
    assert (130, "") == (watching.returncode, told)


def test_a_reader_that_has_seen_enough_is_no_error(site: PluginSite) -> None:
    """`| head` closes the pipe early."""
    with site.start("inspect", site.node) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        reading.stdout.close()
        told = reading.stderr.read()
        reading.wait(PATIENCE_SECONDS)

    assert (0, "") == (reading.returncode, told)


def test_a_dashboard_shows_what_top_shows(site: PluginSite) -> None:
    """From a real API server, through its pod proxy, with the Events of agents alone."""
    for source, reason in (("gpufence-agent", "GPUMemoryEvicted"), ("kubelet", "Pulled")):
        event = {
            "metadata": {"generateName": "trainer-0."},
            "involvedObject": {"kind": "Pod", "namespace": site.team, "name": "trainer-0"},
            "source": {"component": source},
            "reason": reason,
        }
        site.admin.post(core("namespaces", site.team, "events"), event)

    with site.start("dashboard", "--no-open", "-n", site.team) as program:
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        model = json.loads(page(f"{address}state", PATIENCE_SECONDS))["model"]
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE_SECONDS)

    assert 0 == program.returncode
    assert ("3072Mi", ["2150Mi", "plain"], "3500Mi") == tuple(
        model["pods"][0][key] for key in ("limit", "told", "used")
    )
    assert [site.node] == [node["name"] for node in model["nodes"]]
    assert {"GPUMemoryEvicted"} == {one["reason"] for one in model["episodes"]} - {"FailedCreate"}


def test_an_api_server_takes_the_job_that_verifies_a_node(site: PluginSite) -> None:
    """The Job made of the shipped agent is valid, each field known."""
    text = (ROOT / "deploy" / "base" / "agent" / "daemonset.yaml").read_text()
    job = job_on(site.node, yaml.safe_load(text), ["-o", "json"], 300)
    strict: dict[str, str | int] = {"dryRun": "All", "fieldValidation": "Strict"}
    jobs = "/apis/batch/v1/namespaces/default/jobs"

    assert site.admin.post(jobs, job, strict)["metadata"]["name"].startswith("gpufence-verify-")
