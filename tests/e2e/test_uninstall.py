"""Taking gpufence out of a cluster again, and putting it back."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpufence import names
from tests.e2e.site import OVERLAY, Json, RealSite, deployment, notes, pod

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Without:
    """A cluster that had gpufence, and a pod that it fenced."""

    site: RealSite
    tenant: Json


@pytest.fixture(scope="module")
def without(site: RealSite) -> Iterator[Without]:
    """The cluster after the manual's command; at the end everything is installed again."""
    with site.namespace("evict") as team:
        site.apply(deployment(team, "trainer"))
        tenant = site.pod_of(team, "trainer")
        site.cluster.kubectl("delete", "-k", OVERLAY, "--ignore-not-found", "--timeout=100s")
        try:
            yield Without(site, tenant)
        finally:
            site.install()


def test_nothing_is_left_but_annotations(without: Without) -> None:
    """No object of gpufence's is left."""
    assert [] == sorted(name for name in without.site.everything() if "gpufence" in name)


def test_tenants_run_on(without: Without) -> None:
    """A pod that was fenced runs on, and keeps what it was told."""
    tenant = without.tenant["metadata"]

    assert tenant["uid"] == without.site.pod_of(tenant["namespace"], "trainer")["metadata"]["uid"]
    assert "yes" == notes(without.site.pod_of(tenant["namespace"], "trainer"))[names.INJECTED]


def test_new_pods_are_left_alone(without: Without) -> None:
    """A label that is still there means nothing any more."""
    tenant = without.tenant["metadata"]

    assert {} == notes(without.site.admitted(pod(tenant["namespace"], "later")))
