"""What a pod gets beside variables: a scheduler, tolerations, the start-up hook, last lines."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import HookCarrier
from gpufence.mode import Mode
from tests.support.builders import container, gpushare, pod
from tests.support.rewriting import POLICY, annotation, decide, environment, rewritten, variables
from webhook.policy import toleration
from webhook.rewrite import Unchanged
from webhook.rewrite.python_hook import MOUNT, VOLUMES

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
        tolerations=(toleration("team", "ml", "NoSchedule"), toleration("spot", "yes")),
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


WISH = {names.OOM_MESSAGE: "enabled"}
FILLED_IN = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("said", [{}, FILLED_IN])
def test_a_failing_container_keeps_its_last_lines(mode: Mode, said: dict[str, str]) -> None:
    """
    By a wish of its pod or namespace a GPU container's last lines become its message, in any mode;
    a second pass changes nothing, and no other container is touched.
    """
    asked = pod(gpushare() | said, {"name": "proxy"})
    result, _ = rewritten(asked, mode, namespace=WISH)
    first, second = result["spec"]["containers"]

    assert "FallbackToLogsOnError" == first["terminationMessagePolicy"]
    assert {"name": "proxy"} == second
    assert isinstance(decide(result, mode, namespace=WISH), Unchanged)


@pytest.mark.parametrize(
    ("said", "annotations"),
    [
        ({**FILLED_IN, "terminationMessagePath": "/tmp/why"}, WISH),
        ({}, {**WISH, names.INJECT: "disabled"}),
        ({}, {names.INJECT: "disabled"}),
        ({}, {names.OOM_MESSAGE: "disabled"}),
    ],
)
def test_whose_message_stays(said: dict[str, str], annotations: dict[str, str]) -> None:
    """A container that writes a message of its own, or is to be left alone, keeps what it says."""
    result, _ = rewritten(pod(gpushare() | said, annotations=annotations))

    assert said.get("terminationMessagePolicy") == (
        result["spec"]["containers"][0].get("terminationMessagePolicy")
    )


VOLUME = VOLUMES[HookCarrier.PATH]


def hooked(volumes: list[Any] | None = None, **item: Any) -> dict[str, Any]:
    asked = pod(gpushare() | item, annotations={names.PYTHON_HOOK: "pythonpath"})
    if volumes is not None:
        asked["spec"]["volumes"] = volumes
    return asked


def test_two_containers_share_one_volume() -> None:
    """Every GPU container mounts the same volume."""
    asked = pod(gpushare("a"), gpushare("b"), annotations={names.PYTHON_HOOK: "pythonpath"})
    result, _ = rewritten(asked)

    assert [VOLUME] == result["spec"]["volumes"]
    assert [[MOUNT], [MOUNT]] == [item["volumeMounts"] for item in result["spec"]["containers"]]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("/app", "/gpufence:/app"),
        ("", "/gpufence"),
        ("/otel:/app:/gpufence", "/gpufence:/otel:/app"),
        ("/gpufence:/app", "/gpufence:/app"),
        ("/app:$(MORE)", "/gpufence:/app:$(MORE)"),
    ],
)
def test_the_hook_is_found_first(said: str, expected: str) -> None:
    """The hook's folder stands in front of the user's own, whoever else has been there."""
    result, _ = rewritten(hooked(env=variables(PYTHONPATH=said)))

    assert expected == environment(result)[names.PYTHON_PATH]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (hooked([{"name": names.HOOK_VOLUME, "emptyDir": {}}]), "a volume gpufence-python"),
        (hooked(volumeMounts=[{"name": "x", "mountPath": "/gpufence/"}]), "mounted at /gpufence"),
        (
            hooked(
                env=[{"name": "PYTHONPATH", "valueFrom": {"configMapKeyRef": {"name": "c"}}}],
            ),
            "PYTHONPATH comes from elsewhere",
        ),
    ],
)
def test_what_is_in_the_way_is_named(asked: dict[str, Any], reason: str) -> None:
    """Where the hook cannot be mounted, everything else is done and the reason is said."""
    result, said = rewritten(asked)

    assert any(reason in text and "no start-up hook" in text for text in said.warnings)
    assert annotation(result, names.SITECUSTOMIZE) is None


def test_a_gpufence_without_a_hook_says_so() -> None:
    """Where there is no source to mount, the wish is answered with a warning."""
    _, said = rewritten(hooked(), policy=replace(POLICY, hook_source=""))

    assert "main: this gpufence was started without a start-up hook to mount" in said.warnings


def test_the_hook_knows_of_the_hidden_variable() -> None:
    """With the hook, the variable that hides PyTorch's newer one is not worth a warning."""
    _, said = rewritten(hooked(env=variables(PYTORCH_CUDA_ALLOC_CONF="x:1")))

    assert () == said.warnings


def sited(**item: Any) -> dict[str, Any]:
    return pod(gpushare() | item, annotations={names.PYTHON_HOOK: "enabled"})


def mounted(asked: dict[str, Any]) -> list[str]:
    result, _ = rewritten(asked)
    return [item["mountPath"] for item in result["spec"]["containers"][0]["volumeMounts"]]


@pytest.mark.parametrize("own", ["/opt/venv", "/opt/", "/opt/venv/lib/python3.12"])
def test_no_folder_appears_in_a_volume_of_the_users(own: str) -> None:
    """Below a mount of the container's own no line is mounted, as the folder would stay there."""
    paths = mounted(sited(volumeMounts=[{"name": "data", "mountPath": own}]))

    assert "/opt/venv/lib/python3.12/site-packages/gpufence.pth" not in paths
    assert "/usr/lib/python3/dist-packages/gpufence.pth" in paths
