"""Pods of one claim, of which one grows at each look."""

import pytest

from tests.integration.claims.test_claims import create, make
from tests.support import claims
from tests.support.agent.node_site import NodeSite, is_gone, wait_until_gone
from tests.support.kubernetes import BY_MEMORY

pytestmark = pytest.mark.since(*BY_MEMORY, skip=True)

GROWS = "hold 3Gi; grow 10Mi/s to 7Gi"


def test_a_partner_that_grows_at_each_look_spares_nobody(
    site: NodeSite, full_namespace: str
) -> None:
    """The larger one of two pods that together hold more than their claim goes in time."""
    ground = site.ground(full_namespace)
    make(ground, "resourceclaims", claims.claim("both", claims.request("8Gi")))
    ref = claims.by_name("gpu", "both")
    create(ground, "large", "hold 6Gi", ref)
    ground.wait_for_log("large", "script done")
    create(ground, "grows", GROWS, ref)
    ground.wait_for_start("grows", "main")
    with site.agent() as agent:
        wait_until_gone(ground, "large", agent)

    assert not is_gone(ground, "grows")
