"""One site for each module: a control plane, a node with an agent's stand-in, a namespace."""

from collections.abc import Iterator

import pytest

from gpufence.snapshot import write_snapshot
from simulator.controlplane import ControlPlane
from tests.integration.plugin.site import PluginSite
from tests.support.plugin import card_row, pod_row, raw_node, raw_pod, snapshot, use_row
from tests.support.servers import ApiServer, own_address, reply

MIB = 2**20


@pytest.fixture(scope="module")
def site(control_plane: ControlPlane) -> Iterator[PluginSite]:
    with (
        ApiServer(address=own_address()) as standin,
        control_plane.fresh_namespace("plugin") as namespace,
        PluginSite(control_plane, standin, namespace) as made,
    ):
        try:
            made.install(raw_node())
            control_plane.kubectl(
                "label", "namespace", namespace, "gpufence.io/mode=evict", "--overwrite"
            )
            _furnish(made)
            yield made
        finally:
            made.remove()


def _furnish(site: PluginSite) -> None:
    """Make a pod that is over its limit and one that the webhook never saw."""
    item = site.create(raw_pod(name="trainer-0"))
    site.create(raw_pod(name="early-bird", mode=None))
    over = use_row(3500 * MIB, outcome="holding", over_seconds=12.0, due_seconds=18.0)
    row = pod_row(over, uid=item["metadata"]["uid"], namespace=site.team)
    state = snapshot(row, node=site.node, cards=(card_row(),))
    site.standin.on("GET /v1/snapshot", reply(write_snapshot(state).encode()))
