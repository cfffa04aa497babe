"""Targets as patches of the objects that make the pods."""

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import Units
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.verbs.recommend.patches import NodeWords, kustomization, patch_of, targets_of
from tests.support.needs import NEED_KEY, need_summary

MIG = "its MIG instance is its card: choose a profile that holds the target"
WORDS = NodeWords(Units(), 15_360 * MIB)


def owner(resources: dict[str, Any], **template: Any) -> dict[str, Any]:
    server = {"name": "server", "resources": resources}
    return {"spec": {"template": {"spec": {"containers": [server]}, **template}}}


def gpushare(amount: str, *, requests: bool = False) -> dict[str, Any]:
    asked = {names.GPUSHARE_MEMORY: amount}
    return {"limits": asked, **({"requests": asked | {"cpu": "1"}} if requests else {})}


def test_a_patch_says_the_target_where_the_amount_stands() -> None:
    """
    It is a strategic merge of the owner's template, with its command and its reason as comments.
    """
    patch, notes = patch_of([need_summary()], owner(gpushare("8")), WORDS)

    assert patch is not None
    assert () == notes
    assert {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "classifier", "namespace": "vision"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "server", "resources": {"limits": {names.GPUSHARE_MEMORY: "6"}}}
                    ]
                }
            }
        },
    } == patch.body
    assert (
        "kubectl -n vision patch deployment classifier --type strategic --patch-file FILE"
    ) == patch.command
    assert ("server on Tesla T4: 6144 MiB, confidence high, the peak and 15 %",) == patch.comments


def test_requests_follow_their_limits() -> None:
    """The API server takes an extended resource only where both are equal."""
    patch, _ = patch_of([need_summary()], owner(gpushare("8", requests=True)), WORDS)

    assert patch is not None
    (container,) = patch.body["spec"]["template"]["spec"]["containers"]  # type: ignore[index]  # a patch is plain JSON

    assert {names.GPUSHARE_MEMORY: "6"} == container["resources"]["requests"]


def test_sidecars_are_patched_where_they_stand() -> None:
    """A container that starts first is in a list of its own."""
    made = owner({})
    first = {"name": "first", "restartPolicy": "Always", "resources": gpushare("8")}
    made["spec"]["template"]["spec"]["initContainers"] = [{"name": "zero"}, first]
    item = need_summary(key=NEED_KEY._replace(container="first"))
    patch, _ = patch_of([item], made, WORDS)

    assert patch is not None
    spec = patch.body["spec"]["template"]["spec"]  # type: ignore[index]  # a patch is plain JSON

    assert ["initContainers"] == list(spec)


def test_the_template_of_a_cron_job_lies_deeper() -> None:
    """The patch follows the object's own structure."""
    item = need_summary(key=NEED_KEY._replace(kind="CronJob"))
    made = {"spec": {"jobTemplate": owner({"limits": {names.NVIDIA_GPU: "1"}})}}
    patch, _ = patch_of([item], made, WORDS)

    assert patch is not None
    template = patch.body["spec"]["jobTemplate"]["spec"]["template"]  # type: ignore[index]  # a patch is plain JSON

    assert {"metadata": {"annotations": {names.MEMORY: "6Gi"}}} == template


@pytest.mark.parametrize(
    ("resources", "notes"),
    [
        (gpushare("6"), ()),
        (
            {"limits": {f"{names.NVIDIA_MIG_PREFIX}1g.5gb": "1"}},
            ("vision Deployment/classifier, container server: " + MIG,),
        ),
    ],
    ids=["said already", "unsaid"],
)
def test_nothing_to_say_makes_no_patch(resources: dict[str, Any], notes: tuple[str, ...]) -> None:
    """A template that says so already stays as it is, and what cannot be said is told."""
    assert (None, notes) == patch_of([need_summary()], owner(resources), WORDS)


def test_the_card_on_which_it_needs_most_counts() -> None:
    """One amount serves all models of card, and none where one of them is not known."""
    other = need_summary(key=NEED_KEY._replace(card="NVIDIA L4"), target_bytes=7 * GIB)

    assert {"server": 7 * GIB} == targets_of([need_summary(), other])
    assert {} == targets_of([other, need_summary(target_bytes=None)])
    assert {} == targets_of([need_summary(target_bytes=None), other])


def test_a_kustomization_holds_each_patch_with_its_target() -> None:
    """It is a component, so that it can be listed in any kustomization."""
    patch, _ = patch_of([need_summary()], owner(gpushare("8")), WORDS)
    assert patch is not None

    assert {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            {
                "target": {"kind": "Deployment", "name": "classifier", "namespace": "vision"},
                "patch": "TEXT",
            }
        ],
    } == kustomization([patch], ["TEXT"])
