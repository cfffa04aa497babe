"""
Of which Kubernetes the API server is that tests run on, and what older ones cannot do.

`make versions` runs the same tests on each minor. Where one needs more than the oldest has, it says
so: `@pytest.mark.since(36, "agents act as their own node")`. On an older API server such a test has
to fail, which shows that the words are still true; with `skip=True` it does not run there.
"""

import os
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from typing import Final

import pytest

from simulator.controlplane import Assets
from simulator.controlplane.programs import API_SERVER

SINCE: Final = "since"
IMPERSONATION: Final = 36  # constrained impersonation: before it agents act by their own account
AS_ITS_NODE: Final = (IMPERSONATION, "agents act as the node they run on, and as no other")
DAMAGED: Final = (34, "a webhook whose patch is no JSON stops nobody (`failurePolicy: Ignore`)")
BY_CLAIMS: Final = (34, "nodes publish cards for resource claims (`resource.k8s.io/v1`)")
BY_MEMORY: Final = (36, "the scheduler counts the memory of a card that claims share")


def minor_of(version: str) -> int:
    found = re.search(r"v1\.(\d+)\.", version)
    assert found, version
    return int(found.group(1))


@cache
def running_minor() -> int:
    """Ask the API server of KUBEBUILDER_ASSETS; without one it is that of our own build."""
    assets = Assets.from_environment(os.environ)
    given = assets.given / API_SERVER if assets.given else None
    if given is None or not given.is_file():
        return minor_of(assets.recipe.kubernetes)
    said = subprocess.run([given, "--version"], capture_output=True, text=True, check=True)
    return minor_of(said.stdout)


def expect_what_is_missing(items: Iterable[pytest.Item]) -> None:
    """Note what each test shows, and expect it to fail where its Kubernetes is too old for that."""
    for item in items:
        marker = item.get_closest_marker(SINCE)
        if marker is None:
            continue
        minor, what = marker.args
        item.user_properties.append((SINCE, what))
        if minor > running_minor():
            reason = f"since 1.{minor}: {what}"
            missing = pytest.mark.xfail(reason=reason, strict=True)
            skipped = pytest.mark.skip(reason=reason)
            item.add_marker(skipped if marker.kwargs.get("skip") else missing)
