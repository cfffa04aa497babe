"""The webhook configuration says what the code means."""

from typing import Any

import pytest

from gpufence import conditions, names
from gpufence.mode import Mode
from tests.support.manifests import found
from webhook.server import BINDING_PATH, POD_PATHS
from webhook.settings import ServerSettings

BINDINGS = "bindings.gpufence.io"


def hooks() -> dict[str, dict[str, Any]]:
    item = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)
    return {hook["name"]: hook for hook in item["webhooks"]}


def pod_hook(mode: Mode) -> dict[str, Any]:
    return hooks()[f"{mode}.pods.gpufence.io"]


def selector(hook: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    expressions = hook["namespaceSelector"]["matchExpressions"]
    return {(each["key"], each["operator"]): each["values"] for each in expressions}


def test_there_is_a_hook_for_each_mode_and_one_for_bindings() -> None:
    """Nothing is missing and nothing is left over."""
    assert [*(f"{mode}.pods.gpufence.io" for mode in Mode), BINDINGS] == list(hooks())


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_each_mode_is_called_at_its_own_path(mode: Mode) -> None:
    """The API server tells the mode by the path it calls."""
    service = pod_hook(mode)["clientConfig"]["service"]

    assert POD_PATHS[mode] == service["path"]
    assert [str(mode)] == selector(pod_hook(mode))[names.MODE, "In"]


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_match_conditions_are_those_of_the_code(mode: Mode) -> None:
    """The text that decides who is called is the generated one, to the letter."""
    written = {each["name"]: each["expression"] for each in pod_hook(mode)["matchConditions"]}

    assert {"uses-gpu": conditions.uses_gpu(), "no-mirror": conditions.no_mirror()} == written


def test_bindings_have_no_conditions_and_the_upper_modes() -> None:
    """A Binding shows nothing of its pod, so only the namespace decides."""
    hook = hooks()[BINDINGS]

    assert BINDING_PATH == hook["clientConfig"]["service"]["path"]
    assert "matchConditions" not in hook
    assert ["cap", "evict"] == selector(hook)[names.MODE, "In"]
    assert {"pods/binding", "bindings"} == set(hook["rules"][0]["resources"])


@pytest.mark.parametrize("name", hooks())
def test_no_hook_can_stop_a_pod_from_being_made(name: str) -> None:
    """A dead webhook, and the namespaces without which a cluster cannot heal, are left in peace."""
    hook = hooks()[name]

    assert "Ignore" == hook["failurePolicy"]
    assert "None" == hook["sideEffects"]
    assert ["v1"] == hook["admissionReviewVersions"]
    assert ["CREATE"] == hook["rules"][0]["operations"]
    assert [*names.EXEMPT_NAMESPACES] == selector(hook)[names.NAMESPACE_NAME, "NotIn"]


def test_timeouts_are_those_of_the_design() -> None:
    """Three seconds for a pod, one for a binding, and our own deadline ends before either."""
    timeouts = {name: hook["timeoutSeconds"] for name, hook in hooks().items()}

    assert 1 == timeouts.pop(BINDINGS)
    assert {3} == set(timeouts.values())
    assert ServerSettings().api_deadline_seconds < 1


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_pods_are_looked_at_again_when_others_change_them(mode: Mode) -> None:
    """A container that another webhook adds after us is not missed."""
    assert "IfNeeded" == pod_hook(mode)["reinvocationPolicy"]
