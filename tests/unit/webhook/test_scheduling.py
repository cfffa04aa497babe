"""Who schedules a pod, and which taints it bears."""

from dataclasses import replace

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import container, gpushare, pod
from tests.support.rewriting import POLICY, rewritten
from webhook.policy import Toleration

GPU = {names.NVIDIA_GPU: "1"}
CARD_TAINT = {"key": names.NVIDIA_GPU, "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("limits", "said", "scheduler"),
    [
        ({names.VOLCANO_MEMORY: "3000"}, None, "volcano"),
        ({names.VOLCANO_MEMORY: "3000"}, "default-scheduler", "volcano"),
        ({names.VOLCANO_MEMORY: "3000"}, "volcano", "volcano"),
        ({names.VOLCANO_MEMORY: "3000"}, "mine", "mine"),
        ({names.VOLCANO_VGPU_MEMORY: "3000"}, "default-scheduler", "volcano"),
        ({names.GPUSHARE_MEMORY: "3"}, "default-scheduler", "default-scheduler"),
    ],
)
def test_the_scheduler_follows_the_dialect(
    limits: dict[str, str], said: str | None, scheduler: str
) -> None:
    """A dialect's own scheduler takes pods that did not choose one."""
    asked = pod(container(**limits))
    if said is not None:
        asked["spec"]["schedulerName"] = said
    result, _ = rewritten(asked)

    assert scheduler == result["spec"]["schedulerName"]


def test_observe_leaves_the_scheduler() -> None:
    """In observe nobody else schedules the pod, and it bears no more taints."""
    result, _ = rewritten(pod(container(**{names.VOLCANO_MEMORY: "3000"})), Mode.OBSERVE)

    assert {"schedulerName", "tolerations"}.isdisjoint(result["spec"])


@pytest.mark.parametrize(
    ("limits", "own", "expected"),
    [
        ({names.GPUSHARE_MEMORY: "3"}, [], [CARD_TAINT]),
        ({names.GPUSHARE_MEMORY: "3"}, [{"operator": "Exists"}], [{"operator": "Exists"}]),
        ({names.GPUSHARE_MEMORY: "3"}, [CARD_TAINT], [CARD_TAINT]),
        (
            {names.GPUSHARE_MEMORY: "3"},
            [CARD_TAINT | {"effect": "NoExecute"}],
            [CARD_TAINT | {"effect": "NoExecute"}, CARD_TAINT],
        ),
        (
            {names.GPUSHARE_MEMORY: "3"},
            [{"key": names.NVIDIA_GPU, "operator": "Equal", "value": "present"}],
            [{"key": names.NVIDIA_GPU, "operator": "Equal", "value": "present"}, CARD_TAINT],
        ),
        (GPU, [], []),
    ],
)
def test_gpu_pods_bear_the_taint_of_gpu_nodes(
    limits: dict[str, str], own: list[dict[str, str]], expected: list[dict[str, str]]
) -> None:
    """Pods that ask for a share under another name tolerate what GPU nodes are tainted with."""
    result, _ = rewritten(pod(container(**limits), tolerations=own))

    assert expected == result["spec"]["tolerations"]


def test_the_operators_tolerations_are_added() -> None:
    """Configured tolerations come on top, unless the pod has them."""
    policy = replace(
        POLICY,
        tolerations=(Toleration("team", "ml", "NoSchedule"), Toleration("spot", "yes")),
        scheduler_names={"nvidia": "gpu-scheduler"},
    )
    own = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    result, _ = rewritten(pod(container(**GPU), tolerations=[own]), policy=policy)

    spot = {"key": "spot", "operator": "Equal", "value": "yes"}
    assert [own, spot] == result["spec"]["tolerations"]
    assert "gpu-scheduler" == result["spec"]["schedulerName"]


def test_a_pod_of_ours_alone_tolerates_nothing_more() -> None:
    """A pod that asks for no GPU by any resource is not brought onto GPU nodes."""
    result, _ = rewritten(pod(container(), annotations={names.MEMORY: "2Gi"}))

    assert "tolerations" not in result["spec"]


def test_a_node_that_is_not_there_yet_is_known_by_the_selector() -> None:
    """The card that its pod's selector asks for takes the place of the default."""
    asked = pod(gpushare(), nodeSelector={names.GFD_MEMORY: "81920"})
    _, said = rewritten(asked)

    assert "for a card of 81920Mi until it is bound" in said.summary
