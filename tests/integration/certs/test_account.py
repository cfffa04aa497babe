"""What an install leaves of its account, and what the daily run's account can do."""

import base64
import json
from functools import partial

import pytest

from gpufence.names import CA_SECRET, CERTS_INSTALL, TLS_SECRET
from kube import Client, ClientSettings, ForbiddenError, KubeError, PatchType, connect, core, group
from tests.integration.certs.site import CONFIGURATION, CertsSite
from tests.integration.certs.test_program import assert_in_order
from tests.support.observing import wait_until
from tests.support.site import CERTS
from tests.support.tree import found, moved

RBAC = "rbac.authorization.k8s.io/v1"
HOOK = {
    "name": "every.secret.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "clientConfig": {"url": "https://example.com/"},
    "rules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["secrets"],
            "operations": ["CREATE", "UPDATE"],
        }
    ],
}
TRUSTED = [
    {
        "op": "add",
        "path": "/webhooks/0/clientConfig/caBundle",
        "value": base64.b64encode(b"x").decode(),
    }
]


def lasting(site: CertsSite) -> dict[str, str]:
    """Name what the install brings, by kind."""
    return {
        "ClusterRoleBinding": group(RBAC, "clusterrolebindings", CERTS_INSTALL),
        "ClusterRole": group(RBAC, "clusterroles", CERTS_INSTALL),
        "Job": group("batch/v1", "namespaces", site.system, "jobs", CERTS_INSTALL),
        "ServiceAccount": core("namespaces", site.system, "serviceaccounts", CERTS_INSTALL),
    }


def there(site: CertsSite) -> set[str]:
    return {kind for kind, path in lasting(site).items() if site.exists(path)}


@pytest.fixture
def applied(site: CertsSite) -> CertsSite:
    """The manifests with the install's Job, which nothing runs here but the test."""
    site.apply(moved(found("Job", CERTS_INSTALL), site.system))
    return site


def thief(site: CertsSite, account: str) -> Client:
    token = {CERTS: site.kubeconfig_of_daily, CERTS_INSTALL: site.kubeconfig_of_install}[account]
    return connect(ClientSettings(kubeconfig=str(token)))


@pytest.mark.parametrize(
    "change",
    [
        [{"op": "add", "path": "/webhooks/-", "value": HOOK}],
        TRUSTED,
        [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}],
    ],
    ids=["a hook for every Secret", "another CA", "a hook that stops everybody"],
)
def test_the_daily_token_changes_no_hook(site: CertsSite, change: list[dict[str, object]]) -> None:
    """With the daily run's token nobody has the cluster's objects sent to himself."""
    with thief(site, CERTS) as client:
        client.get(CONFIGURATION)
        with pytest.raises(ForbiddenError):
            client.patch(CONFIGURATION, change, PatchType.JSON, {"dryRun": "All"})


def test_an_install_removes_its_account(applied: CertsSite) -> None:
    """When all is in order, the right, Job and account are gone, and the token opens nothing."""
    assert set(lasting(applied)) == there(applied)

    said = applied.run("ensure", "--remove-install-account")

    assert set() == there(applied)
    assert "removed gpufence-certs-install: ClusterRoleBinding, ClusterRole, Job" in said
    assert_in_order(applied)
    with thief(applied, CERTS_INSTALL) as client:
        wait_until(lambda: refused(client))


def refused(client: Client) -> bool:
    """Return whether a token is no longer anybody's, which caches hide for some seconds."""
    try:
        client.patch(CONFIGURATION, TRUSTED, PatchType.JSON, {"dryRun": "All"})
    except KubeError:
        return True
    return False


def test_an_install_is_repeated_by_applying_it_again(applied: CertsSite) -> None:
    """After an install the same manifests bring the next one, which heals a wiped bundle."""
    applied.run("ensure", "--remove-install-account")
    leaf = applied.leaf()
    applied.wipe_bundles()

    assert "apply the manifests of gpufence again" in applied.run("renew", code=1)
    applied.install()
    applied.run("ensure", "--remove-install-account")
    assert set() == there(applied)
    assert leaf == applied.leaf()
    assert_in_order(applied)


@pytest.mark.parametrize("number", range(1, 8))
def test_an_install_killed_anywhere_leaves_nothing_for_long(
    applied: CertsSite, number: int
) -> None:
    """
    Killed after any of its seven writes, an install is finished by its next try, and its account
    removed by the daily run where there is none.
    """
    expected = [CA_SECRET, "gpufence", TLS_SECRET, *[CERTS_INSTALL] * 4]

    assert expected[:number] == applied.run_and_kill(number, "ensure", "--remove-install-account")
    if number < len(expected):
        applied.run("ensure", "--remove-install-account")
    assert_in_order(applied)
    assert set() == there(applied)


@pytest.mark.parametrize("number", range(4, 7))
def test_the_daily_run_finishes_a_removal_that_was_stopped(applied: CertsSite, number: int) -> None:
    """What is left of an install's account once its Job is gone, the daily run takes away."""
    applied.run_and_kill(number, "ensure", "--remove-install-account")
    applied.drop(lasting(applied)["Job"], {"propagationPolicy": "Background"})
    applied.run("renew")

    assert set() == there(applied)


def test_the_daily_run_leaves_an_install_at_work_alone(applied: CertsSite) -> None:
    """While the Job has neither completed nor failed its account stays."""
    applied.run("ensure")
    applied.run("renew")

    assert set(lasting(applied)) == there(applied)


def test_the_daily_run_removes_the_account_of_an_install_that_failed(applied: CertsSite) -> None:
    """A Job that has failed for good does not leave the right to change hooks behind."""
    path = lasting(applied)["Job"]
    now = "2026-01-01T00:00:00Z"
    reason = {"status": "True", "lastTransitionTime": now, "reason": "x", "message": "x"}
    conditions = [{"type": kind, **reason} for kind in ("FailureTarget", "Failed")]
    applied.admin.patch(
        f"{path}/status", {"status": {"startTime": now, "conditions": conditions}}, PatchType.MERGE
    )
    applied.run("renew", code=1)

    assert set() == there(applied)


def test_the_daily_token_deletes_the_installs_objects_alone(applied: CertsSite) -> None:
    """The right to delete reaches the four objects by name, and none beside them."""
    others = (
        group(RBAC, "clusterroles", "gpufence-certs"),
        group(RBAC, "clusterrolebindings", "gpufence-certs"),
        core("namespaces", applied.system, "serviceaccounts", CERTS),
        core("namespaces", applied.system, "serviceaccounts", "default"),
        group("batch/v1", "namespaces", applied.system, "jobs", "other"),
        group(RBAC, "namespaces", applied.system, "roles", CERTS),
        core("namespaces", applied.system, "secrets", TLS_SECRET),
    )
    with thief(applied, CERTS) as client:
        for path in others:
            with pytest.raises(ForbiddenError):
                client.delete(path, {"dryRun": ["All"]})


def test_the_daily_token_becomes_no_install(applied: CertsSite) -> None:
    """Neither by a token of the install's account nor by a right of its own."""
    token = core("namespaces", applied.system, "serviceaccounts", CERTS_INSTALL, "token")
    subject = {"kind": "ServiceAccount", "name": CERTS, "namespace": applied.system}
    role = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": CERTS_INSTALL}
    binding = {"metadata": {"name": "mine"}, "roleRef": role, "subjects": [subject]}
    with thief(applied, CERTS) as client:
        attempts = (
            partial(client.post, token, {}),
            partial(client.post, group(RBAC, "clusterrolebindings"), binding),
            partial(
                client.patch,
                group(RBAC, "clusterroles", CERTS),
                {"rules": []},
                PatchType.MERGE,
            ),
        )
        for attempt in attempts:
            with pytest.raises(ForbiddenError):
                attempt()


def test_an_upgrade_takes_the_right_from_the_daily_run(site: CertsSite) -> None:
    """Applied over a version whose daily job had that right, the manifests take it away."""
    role = found("ClusterRole", CERTS)
    earlier = {**role, "rules": [{**role["rules"][0], "verbs": ["get", "patch"]}]}
    for item in (earlier, role):
        site.kubectl("apply", "--server-side=false", "-f", "-", stdin=json.dumps(item))
    with thief(site, CERTS) as client:
        wait_until(lambda: forbidden(client))


def forbidden(client: Client) -> bool:
    try:
        client.patch(CONFIGURATION, TRUSTED, PatchType.JSON, {"dryRun": "All"})
    except ForbiddenError:
        return True
    return False
