"""Pods that ask for no GPU and use one all the same."""

import pytest

from gpufence import names
from kube import PatchType, core
from tests.support.agent.node_site import NodeSite, events, is_gone, place, wait_until_gone
from tests.support.node_ground import pod, workload
from tests.support.observing import eventually

HOLDS = "hold 1Gi"


@pytest.mark.parametrize(
    ("ceiling", "goes"), [(None, True), ("512Mi", True), ("2Gi", False)], ids=str
)
def test_its_namespace_says_what_becomes_of_it(
    site: NodeSite, namespace: str, ceiling: str | None, *, goes: bool
) -> None:
    """It is reported until its namespace evicts such pods, and then may hold the ceiling."""
    ground = site.ground(namespace)
    place(ground, pod("uninvited", workload(HOLDS, "--context", "100Mi")))
    with site.agent() as agent:
        assert eventually(lambda: bool(events(ground, names.UNDECLARED)))
        assert not is_gone(ground, "uninvited")
        words = {names.UNDECLARED_USE: "evict", names.MAX_MEMORY: ceiling}
        site.admin.patch(
            core("namespaces", namespace), {"metadata": {"annotations": words}}, PatchType.MERGE
        )
        if goes:
            wait_until_gone(ground, "uninvited", agent)
        else:
            known = 'gpufence_verdicts{outcome="within"}'
            assert eventually(lambda: agent.metrics().get(known) == 1)
            assert not is_gone(ground, "uninvited")
