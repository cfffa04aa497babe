"""Limits that fall while a pod is over them."""

from gpufence import names
from kube import PatchType, core
from tests.support.agent.node_site import WITHIN, Fenced, NodeSite, fenced_pod, is_gone, place
from tests.support.node_ground import pod, workload
from tests.support.observing import wait_until

OVER_MIB = 4096


class Ceiling:
    """A namespace's `max-memory`, which is lower by 1 MiB at each look."""

    def __init__(self, ground: Fenced) -> None:
        self._ground = ground
        self.mebibytes = OVER_MIB

    def lower(self) -> None:
        said = {names.MAX_MEMORY: f"{self.mebibytes}Mi"}
        body = {"metadata": {"annotations": said}}
        path = core("namespaces", self._ground.namespace)
        self._ground.admin.patch(path, body, PatchType.MERGE)
        self.mebibytes -= 1


def test_a_limit_that_falls_at_each_look_spares_nobody(site: NodeSite, namespace: str) -> None:
    """A pod that is over its limit goes in time, however often that limit is lowered meanwhile."""
    ground = site.ground(namespace)
    greedy = pod("greedy", workload("hold 5Gi", "--context", "100Mi"))
    greedy["metadata"]["annotations"] = {names.INJECTED: "nothing", names.MEMORY: "6Gi"}
    ceiling = Ceiling(ground)
    ceiling.lower()
    place(ground, fenced_pod("good", WITHIN), greedy)

    def goes() -> bool:
        ceiling.lower()
        return is_gone(ground, "greedy")

    with site.agent() as agent:
        wait_until(goes, f"{agent.snapshot()} {agent.lines[-5:]}")

    assert OVER_MIB - 10 > ceiling.mebibytes
    assert not is_gone(ground, "good")
