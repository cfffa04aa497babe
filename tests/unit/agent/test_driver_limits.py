"""What pods ask the driver for, and how runtimes say that they cannot start with it."""

from typing import Any

import pytest

from agent.model.pod import DriverLimit
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import read
from tests.support.builders import gpushare
from tests.support.builders import pod as raw_pod

CREATE = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
    "create failed: unable to start container process: error during container init: "
)
HOOK = f"{CREATE}error running createRuntime hook #1: exit status 1, stdout: , stderr: "
LACKS = "nvidia-ctk: symbol lookup error: undefined symbol: nvmlDeviceSetMemoryLimits_v1"


def driven(
    *env: tuple[str, object], written: object = "3072", done: Done = Done.SET, **status: Any
) -> dict[str, Any]:
    """Build a pod that asks the driver for a limit; `written` stands in its plan."""
    limit = int(str(written)) * MIB
    rows = (Setting(names.DRIVER_LIMIT, "", "driver", done, limit_bytes=limit),)
    main = ContainerPlan(3 * GIB, 1, Headroom.FACTOR, GIB, rows)
    plan = write_plan(Plan(Mode.CAP, "gpushare", 3 * GIB, {"main": main}))
    raw = raw_pod(gpushare(), annotations={names.INJECTED: "yes", names.PLAN: plan})
    raw["spec"]["containers"][0]["env"] = [{"name": name, "value": value} for name, value in env]
    raw["status"] = {"containerStatuses": [{"name": "main", **status}]}
    return raw


ASKED = ((names.DRIVER_REQUEST, "0"), (names.DRIVER_LIMIT, "3072"))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (driven(*ASKED), {"main": DriverLimit(3 * GIB, ours=True)}),
        (driven(*ASKED, written="2048"), {"main": DriverLimit(3 * GIB)}),
        (driven(*ASKED, done=Done.PLANNED), {"main": DriverLimit(3 * GIB)}),
        (driven(ASKED[1]), {"main": DriverLimit(3 * GIB)}),
        (driven(*ASKED, (names.DRIVER_LIMIT, "512")), {"main": DriverLimit(512 * MIB)}),
        (driven(*ASKED, (names.DRIVER_LIMIT, "3Gi")), {"main": DriverLimit(None)}),
        (driven((names.DRIVER_LIMIT, "\u0663")), {"main": DriverLimit(None)}),
        (driven((names.DRIVER_REQUEST, "0")), {}),
        (driven(("A", "1")), {}),
    ],
)
def test_what_a_container_asks_the_driver_for(
    raw: dict[str, Any], expected: dict[str, DriverLimit]
) -> None:
    """A limit is ours if the plan says the same, and the tenant's otherwise."""
    assert expected == read(raw).driver


FAILED = {"exitCode": 128, "reason": "StartError"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"state": {"waiting": {"reason": "RunContainerError", "message": HOOK + LACKS}}}, True),
        ({"lastState": {"terminated": {**FAILED, "message": HOOK + LACKS}}}, True),
        (
            {
                "state": {"running": {}},
                "lastState": {"terminated": {**FAILED, "message": HOOK + LACKS}},
            },
            False,
        ),
        ({"state": {"terminated": {**FAILED, "reason": "Error", "message": HOOK + LACKS}}}, False),
        (
            {"state": {"terminated": {**FAILED, "message": HOOK + "no such device"}}},
            False,
        ),
        (
            {
                "state": {
                    "terminated": {
                        **FAILED,
                        "message": f'{CREATE}exec: "{HOOK}{LACKS}": executable file not found',
                    }
                }
            },
            False,
        ),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, False),
    ],
)
def test_only_a_runtime_says_that_a_container_cannot_start(
    state: dict[str, Any], *, expected: bool
) -> None:
    """What a tenant names in a pod, or its program leaves as a message, is no word of a hook's."""
    refused = read(driven(*ASKED, **state)).driver["main"].refused

    assert (LACKS if expected else "") == refused[-len(LACKS) :]


def test_each_container_is_judged_by_its_own_status() -> None:
    """A neighbour that cannot start, or an init container, says nothing of another container."""
    words = {"reason": "StartError", "message": HOOK + LACKS}
    raw = driven(*ASKED)
    raw["status"]["containerStatuses"] = [
        {"name": "other", "state": {"waiting": words}},
        {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}},
    ]
    raw["status"]["initContainerStatuses"] = [{"name": "main", "state": {"terminated": {}}}]

    assert "" == read(raw).driver["main"].refused
