"""Component device-taints lets an agent write just the rules that its code makes."""

from agent.cluster.taint_writer import PublishedDevice, rule, rule_name
from agent.model.taint import Disorder
from gpufence import names
from tests.support.manifests import COMPONENTS, found

FOLDER = COMPONENTS / "device-taints"
MADE = rule(
    rule_name("node-1", "gpu-0"), PublishedDevice("node-1", "gpu-0", ()), Disorder.UNATTRIBUTED
)


def test_the_policy_knows_what_a_rule_says() -> None:
    """Driver, key, effect and name stand in it as the code spells them."""
    spec = found("ValidatingAdmissionPolicy", "gpufence-agent-taints", FOLDER)["spec"]
    (validation,) = spec["validations"]
    taint = MADE["spec"]["taint"]

    assert f"== '{MADE['spec']['deviceSelector']['driver']}'" in validation["expression"]
    assert f"taint.key == '{taint['key']}'" in validation["expression"]
    assert f"taint.effect == '{taint['effect']}'" in validation["expression"]
    assert f"startsWith('{names.TAINT_PREFIX}')" in validation["expression"]
    assert ["CREATE", "UPDATE", "DELETE"] == (
        spec["matchConstraints"]["resourceRules"][0]["operations"]
    )


def test_who_takes_it_away_is_told_what_is_left() -> None:
    """By the label that every rule carries."""
    text = (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")
    ((key, value),) = MADE["metadata"]["labels"].items()

    assert f"kubectl delete devicetaintrules -l {key}={value}" in text
