"""How the install's account goes."""

import pytest

from certs import account
from gpufence.names import CERTS_INSTALL
from kube import JsonObject, core, group
from tests.support.certs.builders import NAMES
from tests.support.certs.fakes import FakeApi

RBAC = "rbac.authorization.k8s.io/v1"
JOB = group("batch/v1", "namespaces", NAMES.namespace, "jobs", CERTS_INSTALL)
PATHS = [
    group(RBAC, "clusterrolebindings", CERTS_INSTALL),
    group(RBAC, "clusterroles", CERTS_INSTALL),
    JOB,
    core("namespaces", NAMES.namespace, "serviceaccounts", CERTS_INSTALL),
]
KINDS = ("ClusterRoleBinding", "ClusterRole", "Job", "ServiceAccount")


def ended(kind: str, status: str = "True") -> JsonObject:
    return {"status": {"conditions": [{"type": kind, "status": status}]}}


def test_rights_go_first_and_the_account_last() -> None:
    """The dangerous right is the first to go, and the token works until nothing else is left."""
    api = FakeApi({path: {} for path in PATHS})

    assert KINDS == account.remove(api, NAMES.namespace)
    assert PATHS == api.writes
    assert () == account.remove(api, NAMES.namespace)


def test_what_is_half_gone_goes_all_the_way() -> None:
    """A removal that was stopped is finished by the next."""
    api = FakeApi({PATHS[1]: {}, PATHS[3]: {}})

    assert ("ClusterRole", "ServiceAccount") == account.remove(api, NAMES.namespace)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (None, False),
        ({}, True),
        ({"status": {"active": 1}}, True),
        (ended("Suspended"), True),
        (ended("Failed", "False"), True),
        (ended("Failed"), False),
        (ended("Complete"), False),
    ],
)
def test_an_install_is_at_work_until_its_job_has_ended(
    job: JsonObject | None, *, expected: bool
) -> None:
    """A Job that has neither completed nor failed keeps its account."""
    api = FakeApi({} if job is None else {JOB: job})

    assert expected == account.is_at_work(api, NAMES.namespace)
