"""What an installation shows on a real node: plugin, images, certificates, rights, hook."""

import base64
import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from gpufence import names
from tests.e2e.site import OVERLAY, SYSTEM, Json, RealSite, deployment, notes, pod
from tests.support.site import AGENT, WEBHOOK

pytestmark = pytest.mark.e2e


def test_declared_told_and_measured_side_by_side(site: RealSite, team: str) -> None:
    """One line tells a pod's limit, what its framework was told, and what it really holds."""
    site.apply(deployment(team, "trainer", "hold 1Gi"))
    name = site.pod_of(team, "trainer")["metadata"]["name"]

    def shown() -> list[str]:
        lines = site.answer("top", "--namespace", team).splitlines()
        return next((line.split() for line in lines if name in line), [])

    site.until(lambda: "1024Mi" in shown(), "the pod's use was measured")

    _, node, card, limit, told, used, *_, verdict = shown()
    assert ("gpu-1", "0", "3072Mi", "2150Mi", "1024Mi") == (node, card, limit, told, used)
    assert "within" == verdict


def test_a_pod_is_explained(site: RealSite, team: str) -> None:
    """The sums behind a pod's values can be read."""
    site.apply(deployment(team, "trainer"))
    name = site.pod_of(team, "trainer")["metadata"]["name"]

    explained = site.answer("explain", "--namespace", team, name)

    assert "asks for 3 aliyun.com/gpu-mem" in explained
    assert "PYTORCH_ALLOC_CONF" in explained
    assert "per_process_memory_fraction:0.140000" in explained


def test_a_healthy_installation_has_nothing_wrong(site: RealSite) -> None:
    """The check-up of everything finds no fault."""
    verdict = site.answer("doctor").splitlines()[-1]

    assert verdict == "all is well" or verdict.startswith("nothing is wrong")


PYTHON = "/opt/gpufence/bin/python"
FIND = "import importlib.util, sys; print(*filter(importlib.util.find_spec, sys.argv[1:]))"
FOREIGN = {
    WEBHOOK: ("pynvml", "agent", "certs", "simulator", "pip", "setuptools"),
    AGENT: ("fastapi", "uvicorn", "webhook", "certs", "simulator", "pip", "setuptools"),
}


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_programs_run_as_nobody(site: RealSite, program: str) -> None:
    """The process has the user of the manifest and no capability."""
    pod = site.pods(SYSTEM[1], program)[0]
    status = site.execute(pod, PYTHON, "-c", "print(open('/proc/self/status').read())")
    said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)

    assert ["65532"] * 4 == said["Uid"].split()
    assert 0 == int(said["CapEff"], 16)


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_the_root_is_read_only(site: RealSite, program: str) -> None:
    """Not even a temporary file can be made."""
    pod = site.pods(SYSTEM[1], program)[0]
    attempt = "import os; print([path for path in ('/', '/tmp', '/opt') if os.access(path, 2)])"

    assert "[]" == site.execute(pod, PYTHON, "-c", attempt).strip()


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_an_image_is_for_one_program(site: RealSite, program: str) -> None:
    """Neither other programs, nor their libraries, nor installers are in it."""
    pod = site.pods(SYSTEM[1], program)[0]

    assert "" == site.execute(pod, PYTHON, "-I", "-c", FIND, *FOREIGN[program]).strip()


DAILY = "certs-now"


def trusted(site: RealSite) -> str:
    """Read whom the API server trusts when it calls the webhook."""
    hooks = site.get("mutatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]
    (bundle,) = {hook["clientConfig"]["caBundle"] for hook in hooks}
    return str(bundle)


def certificates(bundle: str) -> int:
    return base64.b64decode(bundle).count(b"BEGIN CERTIFICATE")


def test_no_admission_suffers_from_a_new_authority(site: RealSite, team: str) -> None:
    """While authority and leaf are replaced as the manual says, the webhook sees every pod."""
    before = trusted(site)
    site.system("patch", "secret", names.CA_SECRET, "--type=merge", "-p", '{"data":null}')
    site.cluster.kubectl("apply", "-k", OVERLAY)
    seen = []

    def replaced() -> bool:
        seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))
        now = trusted(site)
        return now != before and certificates(now) == 1

    site.until(replaced, "the authority was replaced", seconds=240)
    gone = f"clusterrole/{names.CERTS_INSTALL}"
    site.cluster.kubectl("wait", gone, "--for=delete", "--timeout=60s")
    seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))

    assert {"yes"} == set(seen)


def test_the_daily_run_has_nothing_to_do(site: RealSite) -> None:
    """The CronJob's Job completes with the rights it has."""
    site.system("create", "job", DAILY, "--from=cronjob/gpufence-certs")
    site.system("wait", "job", DAILY, "--for=condition=complete", "--timeout=100s")
    said = site.system("logs", f"job/{DAILY}")
    site.system("delete", "job", DAILY)

    assert "nothing to do" in said


ELSEWHERE = "elsewhere"
NOWHERE = ""


@pytest.fixture
def elsewhere(site: RealSite) -> Iterator[str]:
    """Another node, of which only the API server knows."""
    site.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ELSEWHERE}})
    yield ELSEWHERE
    site.cluster.kubectl("delete", "node", ELSEWHERE)


@pytest.fixture
def token(site: RealSite) -> str:
    """A token such as the running agent holds: bound to its pod, and thereby to its node."""
    (agent,) = site.pods(SYSTEM[1], AGENT)
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={agent['metadata']['name']}")
    return site.system("create", "token", AGENT, *bound).strip()


def evict(site: RealSite, token: str, where: str, name: str, node: str) -> CompletedProcess[str]:
    """Ask for an eviction, all but carried out, with an agent's token and in the name of a node."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": where, "name": name},
        "deleteOptions": {"dryRun": ["All"]},
    }
    # Without a kubeconfig: its client certificate would outrank the token.
    server = json.loads(site.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    identity = (
        *("--kubeconfig=/dev/null", f"--server={server}", f"--token={token}"),
        f"--certificate-authority={site.cluster.folder}/plane/ca.crt",
        *((f"--as=system:node:{node}",) if node else ()),
    )
    path = f"/api/v1/namespaces/{where}/pods/{name}/eviction"
    return site.cluster.kubectl(
        *identity, "create", "--raw", path, "-f", "-", stdin=json.dumps(eviction), check=False
    )


def test_an_agent_evicts_as_its_own_node(site: RealSite, team: str, token: str) -> None:
    """In the name of the node on which its pod runs an agent may evict that node's pods."""
    site.apply(pod(team, "near"))
    site.pod_of(team, "near")

    done = evict(site, token, team, "near", site.cluster.node)

    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("node", ["gpu-1", ELSEWHERE, NOWHERE], ids=["own", "other", "no-node"])
def test_an_agent_cannot_evict_elsewhere(
    site: RealSite, team: str, token: str, elsewhere: str, node: str
) -> None:
    """A pod of another node is out of an agent's reach, in whosever name it asks."""
    far = pod(team, "far")
    far["spec"] |= {"nodeName": elsewhere, "tolerations": [{"operator": "Exists"}]}
    site.apply(far)

    done = evict(site, token, team, "far", node)

    assert "forbidden" in done.stderr.lower()
    assert 0 != done.returncode


def test_an_agent_without_a_node_cannot_evict(site: RealSite, team: str, token: str) -> None:
    """As itself an agent may not even evict the pods of its own node."""
    site.apply(pod(team, "near"))
    site.pod_of(team, "near")

    assert "forbidden" in evict(site, token, team, "near", NOWHERE).stderr.lower()


# The workload's image runs `python3 -m simulator`, which its own PYTHONPATH alone can find.
ASK = (
    "import os, sys; "
    "print('hook' if any(type(each).__name__ == 'Finder' for each in sys.meta_path) else 'bare',"
    " os.environ.get('PYTHONPATH'), os.getuid())"
)
OWN_PATH = "/opt/simulator"


def hooked(namespace: str, name: str, **container: object) -> Json:
    """Describe a pod that asks for the hook, in a container whose root cannot be written to."""
    made = pod(namespace, name, "hold 1Gi")
    made["metadata"]["annotations"] = {names.PYTHON_HOOK: "enabled"}
    made["spec"]["containers"][0] |= {
        "securityContext": {"readOnlyRootFilesystem": True, "runAsNonRoot": True},
        **container,
    }
    return made


def running(site: RealSite, made: Json) -> Json:
    site.apply(made)
    return site.pod_of(made["metadata"]["namespace"], made["metadata"]["name"])


def test_the_hook_hides_no_path_of_the_images_own(site: RealSite, team: str) -> None:
    """An image that lives by a PYTHONPATH of its own starts with it, and has the hook as well."""
    found = running(site, hooked(team, "own-path"))

    assert f"hook {OWN_PATH} 65532" == site.execute(found, "python3", "-c", ASK).strip()


@pytest.mark.parametrize("flags", ["-I", "-E", "-P"])
def test_the_hook_reaches_interpreters_that_listen_to_no_variable(
    site: RealSite, team: str, flags: str
) -> None:
    """Python's switches against surroundings do not leave the hook out, but -S does."""
    found = running(site, hooked(team, "isolated"))

    assert site.execute(found, "python3", flags, "-c", ASK).startswith("hook ")
    assert site.execute(found, "python3", "-S", "-c", ASK).startswith("bare ")


def test_the_hook_finds_a_virtual_environment(site: RealSite, team: str) -> None:
    """A virtual environment at one of the usual places has the hook; one anywhere else does not."""
    made = hooked(
        team,
        "venv",
        command=["sh", "-c", "python3 -m venv --without-pip /opt/venv && exec sleep infinity"],
        securityContext={"runAsUser": 0, "runAsNonRoot": False},
        args=[],
    )
    found = running(site, made)
    site.until(
        lambda: site.execute(found, "ls", "/opt/venv").split() != ["lib"], "the venv was made"
    )

    assert site.execute(found, "/opt/venv/bin/python", "-I", "-c", ASK).startswith("hook ")


def test_an_image_that_is_not_asked_has_no_hook(site: RealSite, team: str) -> None:
    """Without the annotation nothing is mounted."""
    site.apply(pod(team, "unasked", "hold 1Gi"))
    found = site.pod_of(team, "unasked")

    assert f"bare {OWN_PATH} 65532" == site.execute(found, "python3", "-c", ASK).strip()
