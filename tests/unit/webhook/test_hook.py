"""Mounting the start-up hook."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import HookCarrier
from gpufence.mode import Mode
from tests.support.builders import gpushare, pod
from tests.support.rewriting import (
    POLICY,
    annotation,
    decide,
    environment,
    rewritten,
    variables,
)
from webhook.rewrite import Unchanged
from webhook.rewrite.python_hook import MOUNT, SITE_FOLDERS, SITE_LINE, VOLUMES

VOLUME = VOLUMES[HookCarrier.PATH]


def hooked(volumes: list[Any] | None = None, **item: Any) -> dict[str, Any]:
    asked = pod(gpushare() | item, annotations={names.PYTHON_HOOK: "pythonpath"})
    if volumes is not None:
        asked["spec"]["volumes"] = volumes
    return asked


def test_the_hook_is_mounted_from_an_annotation() -> None:
    """The source travels in an annotation, a volume shows it, and PYTHONPATH leads to it."""
    result, _ = rewritten(hooked())

    assert "pass\n" == annotation(result, names.SITECUSTOMIZE)
    assert [VOLUME] == result["spec"]["volumes"]
    assert [MOUNT] == result["spec"]["containers"][0]["volumeMounts"]
    assert "/gpufence" == environment(result)[names.PYTHON_PATH]


def test_a_second_pass_mounts_nothing_again() -> None:
    """The hook is mounted once, however often the webhook is called."""
    result, _ = rewritten(hooked([{"name": "data", "emptyDir": {}}], volumeMounts=[]))

    assert isinstance(decide(result), Unchanged)


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


def test_what_env_from_may_bring_stays_in_force() -> None:
    """Beside envFrom the variable refers to itself, which the kubelet expands."""
    result, _ = rewritten(hooked(envFrom=[{"configMapRef": {"name": "c"}}]))

    assert "/gpufence:$(PYTHONPATH)" == environment(result)[names.PYTHON_PATH]


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


def test_observe_mounts_nothing() -> None:
    """In observe no volume appears."""
    result, _ = rewritten(hooked(), Mode.OBSERVE)

    assert "volumes" not in result["spec"]


def test_the_hook_knows_of_the_hidden_variable() -> None:
    """With the hook, the variable that hides PyTorch's newer one is not worth a warning."""
    _, said = rewritten(hooked(env=variables(PYTORCH_CUDA_ALLOC_CONF="x:1")))

    assert () == said.warnings


def sited(**item: Any) -> dict[str, Any]:
    return pod(gpushare() | item, annotations={names.PYTHON_HOOK: "enabled"})


def mounted(asked: dict[str, Any]) -> list[str]:
    result, _ = rewritten(asked)
    return [item["mountPath"] for item in result["spec"]["containers"][0]["volumeMounts"]]


def test_the_hook_reaches_site_folders_without_a_variable() -> None:
    """
    One line is mounted into the site folders of common layouts, and PYTHONPATH stays as it is.
    """
    result, _ = rewritten(sited())
    paths = [item["mountPath"] for item in result["spec"]["containers"][0]["volumeMounts"]]

    assert names.PYTHON_PATH not in environment(result)
    assert [VOLUMES[HookCarrier.SITE]] == result["spec"]["volumes"]
    assert SITE_LINE == annotation(result, names.SITE_LINE)
    assert MOUNT["mountPath"] == paths[0]
    assert [f"{folder}/gpufence.pth" for folder in SITE_FOLDERS] == paths[1:]


def test_a_second_pass_mounts_no_line_again() -> None:
    """The lines are mounted once, beside mounts of the container's own."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    result, _ = rewritten(sited(volumeMounts=mounts))

    assert isinstance(decide(result), Unchanged)


@pytest.mark.parametrize("own", ["/opt/venv", "/opt/", "/opt/venv/lib/python3.12"])
def test_no_folder_appears_in_a_volume_of_the_users(own: str) -> None:
    """
    Below a mount of the container's own no line is mounted, since the folder would stay there.
    """
    paths = mounted(sited(volumeMounts=[{"name": "data", "mountPath": own}]))

    assert "/opt/venv/lib/python3.12/site-packages/gpufence.pth" not in paths
    assert "/usr/lib/python3/dist-packages/gpufence.pth" in paths
