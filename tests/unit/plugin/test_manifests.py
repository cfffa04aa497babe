"""What the plugin looks for is what the manifests install."""

from gpufence import names
from kubectl_gpufence.pods import STATUS_PORT, status_port
from kubectl_gpufence.reader import AGENT_LABEL, WEBHOOK_LABEL
from kubectl_gpufence.verbs.doctor.installation import HOOKS, POLICIES
from tests.support.manifests import found, objects


def names_of(kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in objects() if item["kind"] == kind}


def test_hooks_and_policies_are_those_that_are_installed() -> None:
    """The doctor misses no hook and no policy, and asks for none that does not exist."""
    hooks = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]

    assert set(HOOKS) == {hook["name"] for hook in hooks}
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicy")
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicyBinding")


def test_agents_and_webhooks_are_found_by_their_labels() -> None:
    """The labels and the status port are those of the pods' templates."""
    for kind, name, label in (
        ("DaemonSet", "gpufence-agent", AGENT_LABEL),
        ("Deployment", names.WEBHOOK_SERVICE, WEBHOOK_LABEL),
    ):
        template = found(kind, name)["spec"]["template"]
        key, _, value = label.partition("=")

        assert value == template["metadata"]["labels"][key]
        assert STATUS_PORT == status_port(template)


def test_objects_the_doctor_asks_for_are_installed() -> None:
    """The kill switch and the namespace are part of the base."""
    assert names.POLICY_CONFIGMAP in names_of("ConfigMap")
    assert names.SYSTEM_NAMESPACE in names_of("Namespace")
