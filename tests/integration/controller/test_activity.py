"""How busy an owner is, for whoever scales it: an answer only where everything is known."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gpufence import names
from tests.support.controller.site import ControllerProcess, ControllerSite
from tests.support.observing import eventually, wait_until

pytestmark = pytest.mark.usefixtures("followed")

OPEN = {"GPUFENCE_ACTIVITY_AUTH": "none"}
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def answering(shared_site: ControllerSite) -> Iterator[ControllerProcess]:
    """One controller for all tests that only ask, and play no trick on agents."""
    with shared_site.controller(**OPEN) as controller:
        controller.wait_until_leading()
        yield controller


def answer(
    controller: ControllerProcess, path: str, status: int = 200, **said: float
) -> dict[str, Any]:
    """Wait for an answer of this kind, which says this among other things, and return that one."""
    last: tuple[int, dict[str, Any]] = (0, {})

    def is_it() -> bool:
        nonlocal last
        last = controller.activity(path)
        return last[0] == status and said.items() <= last[1].items()

    wait_until(is_it, lambda: f"{last} {controller.lines}")
    return last[1]


def test_busy_replicas_add_up(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """
    Two pods that were busy for three quarters of the last minute are one and a half; room is what
    still fits on both nodes.
    """
    site.fence(full_namespace, None)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker", 2, units=5)
    site.wait_for_pods(full_namespace, 2)
    found = {
        word: answer(answering, f"{full_namespace}/{word}/worker", busyReplicas=1.5)
        for word in ("deployments", "Deployment", "deploy", "deployments.apps")
    }
    metrics = answering.metrics()

    assert {"busyReplicas": 1.5, "idleSeconds": 0.0, "replicas": 2} == {
        key: value for key, value in found["deployments"].items() if key != "room"
    }
    assert 0 < found["deployments"]["room"] <= 10
    assert 1 == len({str(item) for item in found.values()})
    assert metrics["gpufence_controller_agents_silent_total"] == 0


def test_an_idle_owner_says_for_how_long(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """The shortest time of all its pods counts."""
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker")
    path = f"{full_namespace}/deployments/worker"
    wait_until(lambda: answer(answering, path)["idleSeconds"] is not None, answering.lines)
    found = answer(answering, path)

    assert 0.0 == found["busyReplicas"]
    assert site.played.idle_seconds <= found["idleSeconds"] < site.played.idle_seconds + 60


def test_an_owner_without_pods_is_known(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """From zero it can be told how many would fit, by its template."""
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker", 0, units=15)
    found = answer(answering, f"{full_namespace}/deployments/worker", room=4)

    assert {"busyReplicas": 0.0, "idleSeconds": None, "room": 4, "replicas": 0} == found


def test_pods_that_wait_are_known_to_do_nothing(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """They count as nothing busy, and take no room."""
    site.fence(full_namespace, None)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker", 5, units=15)
    site.wait_for_pods(full_namespace, 4)
    site.wait_for_pods(full_namespace, 1, "Pending")
    found = answer(answering, f"{full_namespace}/deployments/worker", busyReplicas=3.0, room=0)

    assert (3.0, 0, 5) == (found["busyReplicas"], found["room"], found["replicas"])


@pytest.mark.parametrize("fault", ["silent", "stale", "unknown"])
def test_while_anything_is_unknown_there_is_no_number(
    site: ControllerSite, full_namespace: str, fault: str
) -> None:
    """
    A pod that cannot be measured, or an agent that is silent or tells of long ago, is an error; the
    other owners are answered for.
    """
    site.fence(full_namespace, None)
    where = {"nodeSelector": {"pool": site.one}}
    site.deploy(full_namespace, "left", 1, **where)
    site.deploy(full_namespace, "right", 1, nodeSelector={"pool": site.two})
    if fault == "unknown":
        site.played.unknown.add("left")
    else:
        getattr(site.agents, fault).add(site.one)
    site.wait_for_pods(full_namespace, 2)
    with site.controller(**OPEN) as controller:
        right = answer(controller, f"{full_namespace}/deployments/right")
        left = answer(controller, f"{full_namespace}/deployments/left", 503)

    assert 0.0 == right["busyReplicas"]
    assert "left" in left["error"] or site.one in left["error"]


def test_a_stale_view_is_no_answer(site: ControllerSite, full_namespace: str) -> None:
    """Soon after the API server has gone, nothing is answered; when it is back, everything is."""
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker")
    site.wait_for_pods(full_namespace, 1)
    with site.controller(**OPEN) as controller:
        answer(controller, f"{full_namespace}/deployments/worker")
        site.plane.stop_api_server()
        try:
            answer(controller, f"{full_namespace}/deployments/worker", 503)
        finally:
            site.plane.start_api_server()
        answer(controller, f"{full_namespace}/deployments/worker")


def test_who_is_not_there_is_not_found(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """The answer says what to do."""
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker")
    absent = ("deployments/nobody", "statefulsets/worker", "", "a/b/c/d")
    answer(answering, f"{full_namespace}/deployments/worker")
    found = [answer(answering, f"{full_namespace}/{path}", 404)["error"] for path in absent]

    assert [True] * len(absent) == [names.MODE in text for text in found]


def test_a_namespace_that_says_nothing_is_not_shown(
    site: ControllerSite, answering: ControllerProcess, full_namespace: str
) -> None:
    """Only who is fenced, or says what becomes of idle GPUs, is anybody's business."""
    site.deploy(full_namespace, "worker")
    site.wait_for_pods(full_namespace, 1)
    found = answer(answering, f"{full_namespace}/deployments/worker", 404)
    shown = answering.owner(full_namespace, "worker")

    assert {} == shown
    assert "fenced" in found["error"]


def test_who_asks_shows_a_token_that_may_know(site: ControllerSite, full_namespace: str) -> None:
    """
    Without a token nothing is told, nor to whom may not get the owner's scale; who may, is, also
    that there is no such owner. A token that has ended, or was made for others, is none.
    """
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker")
    site.wait_for_pods(full_namespace, 1)
    token = site.plane.service_account_token(full_namespace, "default")
    path = f"{full_namespace}/deployments/worker"
    with site.controller() as controller:
        wait_until(lambda: controller.activity(path)[0] == 401, controller.lines)
        nobody, wrong = (controller.activity(path, text) for text in ("", "x"))
        stranger = controller.activity(path, token)
        absent = controller.activity(f"{full_namespace}/deployments/nobody")
    allow(site, full_namespace)
    others = site.plane.service_account_token(full_namespace, "default", audience="vault")
    with site.controller() as controller:
        wait_until(lambda: controller.activity(path)[0] == 401, controller.lines)
        allowed = eventually(lambda: controller.activity(path, token)[0] == 200)
        missing = controller.activity(f"{full_namespace}/deployments/nobody", token)
        shown = [
            controller.activity(path, text)[0]
            for text in (signed(site, token, 0), signed(site, token, 7200), others)
        ]

    assert [401, 401, 403, 401] == [item[0] for item in (nobody, wrong, stranger, absent)]
    assert "deployments/scale" in stranger[1]["error"]
    assert allowed
    assert (404, True) == (missing[0], names.MODE in missing[1]["error"])
    assert [200, 401, 401] == shown


def signed(site: ControllerSite, token: str, seconds_ago: int) -> str:
    """Sign the claims of a token as the API server would have done so long ago."""
    head, body, _ = token.split(".")
    claims = json.loads(urlsafe_b64decode(f"{body}=="))
    old = {key: claims[key] - seconds_ago for key in ("iat", "nbf", "exp")}
    unsigned = f"{head}.{_part(json.dumps(claims | old).encode())}"
    pem = (site.plane.folder / "service-accounts.key").read_bytes()
    key = load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    pair = decode_dss_signature(key.sign(unsigned.encode(), ec.ECDSA(SHA256())))
    return f"{unsigned}.{_part(b''.join(number.to_bytes(32, 'big') for number in pair))}"


def _part(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def allow(site: ControllerSite, namespace: str) -> None:
    role = {
        "apiVersion": RBAC,
        "kind": "Role",
        "metadata": {"name": "autoscaler", "namespace": namespace},
        "rules": [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}],
    }
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    binding = {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": "autoscaler", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": "Role", "name": "autoscaler"},
        "subjects": [subject],
    }
    site.apply(role, binding)
