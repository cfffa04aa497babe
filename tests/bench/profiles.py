"""
`python -m tests.bench.profiles`: what the controller takes with thousands of profiles.

Owners, each on three nodes for fourteen days, on a real API server; the controller makes a profile
of each, then begins again and finds them all.
"""

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gpufence import names
from gpufence.need import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed
from gpufence.quantity import GIB, MIB
from gpufence.times import write_moment
from kube import core, group
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from tests.support.controller.site import PROFILES, ControllerProcess, ControllerSite
from tests.support.objects import deployment
from tests.support.observing import memory_of, wait_until

NODES: Final = 500
NODES_OF_OWNER: Final = 3
DAYS: Final = 14
TEAMS: Final = 20
PATIENCE_SECONDS: Final = 1200.0
CARD: Final = CardNeed("NVIDIA A100-SXM4-80GB", 81_559 * MIB, 600 * MIB)
PROFILES_METRIC: Final = "gpufence_controller_profiles"


def needs(owners: int) -> list[NodeNeed]:
    """Make up what all nodes remember."""
    chance = random.Random(17)
    now = time.time()
    days = [write_moment(now - ago * 86_400)[:10] for ago in reversed(range(DAYS))]
    on: list[list[OwnerNeed]] = [[] for _ in range(NODES)]
    for place in range(owners):
        key = NeedKey(f"team-{place % TEAMS}", "Deployment", f"model-{place}", "server", CARD.model)
        for node in chance.sample(range(NODES), NODES_OF_OWNER):
            rows = [
                NeedDay(
                    day,
                    chance.randrange(GIB, 60 * GIB),
                    pods=chance.randrange(1, 9),
                    held_seconds=86_400.0,
                    told_bytes=40 * GIB,
                    limit_bytes=70 * GIB,
                    process_bytes=chance.randrange(GIB, 30 * GIB),
                    started=1,
                )
                for day in days
            ]
            on[node].append(OwnerNeed(key, tuple(rows)))
    return [NodeNeed(f"node-{n}", tuple(sorted(each)), (CARD,)) for n, each in enumerate(on)]


def main() -> None:
    owners = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with (
        ControlPlane.start(Assets.from_environment(os.environ), PlaneOptions()) as plane,
        plane.fresh_namespace("system") as system,
        ControllerSite(plane, system) as site,
    ):
        _measure(site, owners)


def _measure(site: ControllerSite, owners: int) -> None:
    site.install()
    site.install_profiles()
    for team in range(TEAMS):
        body = {"metadata": {"name": f"team-{team}", "labels": {names.MODE: "observe"}}}
        site.admin.post(core("namespaces"), body)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda place: _deploy(site, place), range(owners)))
        list(pool.map(site.remember, needs(owners)))
    fast = {"GPUFENCE_PROFILE_SECONDS": "1", "GPUFENCE_PROFILE_WRITES": "200"}
    began = time.monotonic()
    with site.controller(**fast) as controller:
        _wait_for(controller, owners, "create")
        print(f"{owners} profiles made in {time.monotonic() - began:.0f} s", _memory(controller))
    with site.controller(**fast) as controller:
        wait_until(lambda: controller.metrics().get(PROFILES_METRIC) == owners, seconds=300)
        time.sleep(60)
        writes = {key: value for key, value in controller.metrics().items() if "_writes" in key}
        print("begun again:", _memory(controller), writes or "nothing written")
    print(len(site.admin.list(PROFILES).items), "profiles")


def _deploy(site: ControllerSite, place: int) -> None:
    path = group("apps/v1", "namespaces", f"team-{place % TEAMS}", "deployments")
    site.admin.post(path, deployment(f"model-{place}", 0))


def _wait_for(controller: ControllerProcess, owners: int, step: str) -> None:
    line = f'gpufence_controller_profile_writes_total{{step="{step}",outcome="done"}}'
    wait_until(lambda: controller.metrics().get(line, 0) >= owners, seconds=PATIENCE_SECONDS)


def _memory(controller: ControllerProcess) -> str:
    return f"{memory_of(controller.process.pid) / MIB:.1f} MiB"


if __name__ == "__main__":
    main()
