"""An idle owner goes, and comes back: on a real API server, with the controller's own rights."""

import pytest

from gpufence import names
from tests.support.controller.site import ControllerSite
from tests.support.observing import wait_until

pytestmark = pytest.mark.usefixtures("followed")


def test_an_idle_owner_is_announced_released_and_noted(
    site: ControllerSite, full_namespace: str
) -> None:
    """Its replicas are gone, its note says how many there were, and Events say what happened."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)
        note = site.note(full_namespace, "worker")
        site.wait_for_pods(full_namespace, 0)
        wait_until(lambda: site.events(full_namespace, names.IDLE_RELEASED))
        wait_until(lambda: controller.owner(full_namespace, "worker")["state"] == "released")

    assert note is not None
    assert (2, 0) == (note.replicas, site.replicas(full_namespace, "worker"))
    assert 1 == len(site.events(full_namespace, names.IDLE_WARNING))
    assert 2 == len(site.events(full_namespace, names.IDLE_WARNING, "Pod"))


def test_a_busy_owner_stays(site: ControllerSite, full_namespace: str) -> None:
    """One pod that works is enough."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "idler", 1)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        wait_until(lambda: site.phase(full_namespace, "idler") == "released", controller.lines)
        shown = controller.owner(full_namespace, "worker")

    assert "busy" == shown["state"]
    assert 2 == site.replicas(full_namespace, "worker")
    assert site.note(full_namespace, "worker") is None


@pytest.mark.parametrize("rung", ["report", "warn", None])
def test_nothing_is_released_where_the_namespace_does_not_say_so(
    site: ControllerSite, full_namespace: str, rung: str | None
) -> None:
    """Below release, nothing is changed."""
    site.fence(full_namespace, rung)
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:
        wait_until(
            lambda: controller.owner(full_namespace, "worker").get("state") == "idle",
            controller.lines,
        )
        if rung == "warn":
            wait_until(lambda: site.events(full_namespace, names.IDLE_WARNING))

    assert 1 == site.replicas(full_namespace, "worker")
    assert site.note(full_namespace, "worker") is None
