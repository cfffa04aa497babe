"""A pod whose container may allocate less than it takes, as the webhook leaves it."""

from typing import Any

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.agent.node_site import pod, workload

ASKED, GIVEN = 3 * GIB, 2150 * MIB
CAP = {"name": names.PYTORCH_CONF, "value": "per_process_memory_fraction:0.14"}
UID = "3f0f6cf2-7a64-4c6c-9c0e-6a41a8b8a1a1"


def capped(name: str, script: str) -> dict[str, Any]:
    """Describe a pod of 3 GiB that may allocate 0.14 of its card, as the webhook leaves it."""
    row = Setting(
        *(names.PYTORCH_CONF, names.PYTORCH_CONF, "pytorch", Done.SET, None),
        *(ASKED, 512 * MIB, 15 * GIB, GIVEN),
    )
    main = ContainerPlan(ASKED, 1, Headroom.FACTOR, GIVEN, (row,))
    plan = write_plan(Plan(Mode.EVICT, "gpushare", ASKED, {"main": main}))
    resources = {"limits": {names.GPUSHARE_MEMORY: "3"}}
    options = ("--context", "300Mi", "--framework", "torch")
    container = workload(script, *options, env=[CAP], resources=resources)
    said = {names.INJECTED: "yes", names.GPUSHARE_CARD_INDEX: "0", names.PLAN: plan}
    item = pod(name, container, annotations=said)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": UID}
    item["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return item
