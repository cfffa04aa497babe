"""
Taking gpufence out of a cluster again, and putting it back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpufence import names
from tests.e2e.site import OVERLAY, Json, RealSite, notes
from tests.e2e.tenants import deployment, pod

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

# Kinds of which tenants' own objects bear the name, or that only tell of the past.
PASSING = ("events", "events.events.k8s.io")


@dataclass(frozen=True)
class Without:
    """
    A cluster that had gpufence, and a pod that it fenced.
    """

    site: RealSite
    tenant: Json


@pytest.fixture(scope="module")
def without(site: RealSite) -> Iterator[Without]:
    """
    The cluster after the manual's command; at the end everything is installed again.
    """
    with site.namespace("evict") as team:
        site.apply(deployment(team, "trainer"))
        tenant = site.pod_of(team, "trainer")
        site.cluster.kubectl("delete", "-k", OVERLAY, "--timeout=100s")
        try:
            yield Without(site, tenant)
        finally:
            site.install()


def everything(site: RealSite) -> set[str]:
    """
    Name every object of the cluster that the API server lists.
    """
    listed = site.cluster.kubectl("api-resources", "--verbs=list", "--output=name").stdout.split()
    kinds = ",".join(kind for kind in listed if kind not in PASSING)
    return set(
        site.cluster.kubectl(
            "get", kinds, "--all-namespaces", "--output=name", "--ignore-not-found"
        ).stdout.split()
    )


def test_nothing_is_left_but_annotations(without: Without) -> None:
    """
    No object of gpufence's is left.
    """
    assert [] == sorted(name for name in everything(without.site) if "gpufence" in name)


def test_tenants_run_on(without: Without) -> None:
    """
    A pod that was fenced runs on, and keeps what it was told.
    """
    tenant = without.tenant["metadata"]

    assert tenant["uid"] == without.site.pod_of(tenant["namespace"], "trainer")["metadata"]["uid"]
    assert "yes" == notes(without.site.pod_of(tenant["namespace"], "trainer"))[names.INJECTED]


def test_new_pods_are_left_alone(without: Without) -> None:
    """
    A label that is still there means nothing any more.
    """
    tenant = without.tenant["metadata"]

    assert {} == notes(without.site.admitted(pod(tenant["namespace"], "later")))
