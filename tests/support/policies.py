"""Policies of an API server, which takes up new ones a moment after they are made."""

from typing import Final
from uuid import uuid4

from kube import InvalidRequestError, JsonObject, core, group
from tests.support.observing import wait_until
from tests.support.site import Site

ADMISSION: Final = "admissionregistration.k8s.io/v1"
KINDS: Final = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def policy_path(item: JsonObject) -> str:
    """Return where a policy or binding is."""
    return group(ADMISSION, KINDS[item["kind"]], item["metadata"]["name"])


def wait_until_enforced(site: Site) -> None:
    """
    Wait until every policy is enforced that is there by now: one more is made, which refuses one
    ConfigMap, and the API server takes up all of them together.
    """
    name = f"marker-{uuid4().hex[:8]}"
    made = _refusing(name)
    site.apply(*made)
    try:
        wait_until(lambda: _is_refused(site, name), "policies are not enforced")
    finally:
        for item in made:
            site.drop(policy_path(item))


def _refusing(name: str) -> tuple[JsonObject, JsonObject]:
    configmaps = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    refusal = {"expression": f"object.metadata.name != '{name}'"}
    specs: tuple[JsonObject, JsonObject] = (
        {"matchConstraints": {"resourceRules": [configmaps]}, "validations": [refusal]},
        {"policyName": name, "validationActions": ["Deny"]},
    )
    policy, binding = (
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in zip(KINDS, specs, strict=True)
    )
    return policy, binding


def _is_refused(site: Site, name: str) -> bool:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    try:
        site.admin.post(core("namespaces", "default", "configmaps"), item, {"dryRun": "All"})
    except InvalidRequestError:
        return True
    return False
