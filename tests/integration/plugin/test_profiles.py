"""GPUMemoryProfiles on a real API server: their columns, their schema, who may write what."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.need.profile import KIND, conditions_of, profile_name, read_profile, write_status
from kube import KubeError, PatchType, group
from simulator.controlplane import User
from tests.integration.plugin.site import PluginSite
from tests.support.builders import NEED_KEY, need_summary
from tests.support.observing import wait_until
from tools.manifests import COMPONENTS

OWNER = "classifier"


def profiles(site: PluginSite) -> str:
    return group(names.PROFILE_GROUP, "namespaces", site.team, names.PROFILES)


def _is_served(site: PluginSite) -> bool:
    """Return whether the API server hands the kind out, which it begins to do a moment later."""
    try:
        site.admin.get(profiles(site))
    except KubeError:
        return False
    return True


@pytest.fixture(scope="module")
def profiled(site: PluginSite) -> Iterator[PluginSite]:
    """Install the kind of profiles, and write one as the controller does."""
    kubectl = site.plane.kubectl
    folder = str(COMPONENTS / "need")
    kubectl("apply", "-f", f"{folder}/profiles.yaml", "-f", f"{folder}/rbac.yaml")
    crd = f"crd/{names.PROFILES}.gpufence.io"
    kubectl("wait", "--for=condition=Established", "--timeout=60s", crd)
    wait_until(lambda: _is_served(site), "profiles")
    target = {"kind": "Deployment", "name": OWNER}
    name = profile_name(**target)
    body = {"apiVersion": names.PROFILE_GROUP, "kind": KIND}
    made = body | {"metadata": {"name": name}, "spec": {"targetRef": target}}
    site.admin.post(profiles(site), made)
    summaries = [need_summary(key=NEED_KEY._replace(namespace=site.team))]
    conditions = [
        {
            "type": item.type,
            "status": str(item.holds),
            "reason": item.reason,
            "message": item.message,
            "lastTransitionTime": "2026-11-19T05:00:00Z",
        }
        for item in conditions_of(summaries)
    ]
    status = {"status": write_status(summaries, 1) | {"conditions": conditions}}
    site.admin.patch(f"{profiles(site)}/{name}/status", status, PatchType.MERGE)
    yield site
    kubectl("delete", "-f", f"{folder}/profiles.yaml", "-f", f"{folder}/rbac.yaml")


def test_profiles_are_believed_first(profiled: PluginSite) -> None:
    """Where the controller has written them, nobody else is asked."""
    said = profiled.json("recommend", "-n", profiled.team)

    assert ("profiles", ["6144Mi"]) == (said["source"], [item["target"] for item in said["needs"]])
    assert [] == said["notes"]


def test_get_gmp_answers_the_question(profiled: PluginSite) -> None:
    """The columns of the kind are limit, peak, target and how far to trust it."""
    shown = profiled.plane.kubectl("get", "gmp", "-n", profiled.team).stdout.splitlines()

    assert ["NAME", "LIMIT", "PEAK", "TARGET", "CONFIDENCE", "CAPPED"] == shown[0].split()
    assert ["deployment-classifier", "8192Mi", "4096Mi", "6144Mi", "high", "false"] == (
        shown[1].split()
    )


def test_the_api_server_keeps_all_of_a_status(profiled: PluginSite) -> None:
    """The schema knows every field that is written, and defaults say what they should."""
    raw = profiled.admin.get(f"{profiles(profiled)}/deployment-classifier")
    profile = read_profile(raw)

    assert (need_summary(key=NEED_KEY._replace(namespace=profiled.team)),) == profile.containers
    assert ("Never", "15%") == (raw["spec"]["apply"], raw["spec"]["margin"])
    assert ["Ready", "AtCap", "LowConfidence"] == [
        item["type"] for item in raw["status"]["conditions"]
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"targetRef": {"kind": "Deployment", "name": "other"}}, "make another profile"),
        ({"apply": "Always"}, "Unsupported value"),
        ({"margin": "a lot"}, "spec.margin"),
        ({"max": "-3Gi"}, "spec.max"),
        ({"max": "6"}, "from 1Mi"),
        ({"max": 6}, "from 1Mi"),
        ({"max": "999999999999Ti"}, "from 1Mi"),
    ],
)
def test_what_makes_no_sense_is_refused(
    profiled: PluginSite, change: dict[str, Any], expected: str
) -> None:
    """A wrong word in the spec is named by the API server."""
    done = profiled.plane.kubectl(
        *("patch", "gmp", "deployment-classifier", "-n", profiled.team, "--type", "merge"),
        *("-p", json.dumps({"spec": change})),
        check=False,
    )

    assert 0 != done.returncode
    assert expected in done.stderr


def test_who_edits_a_namespace_writes_no_status(profiled: PluginSite) -> None:
    """The role for people holds the spec alone."""
    editor = User("editor", "editors")
    role = ("--clusterrole=gpufence-profiles-edit", "--group=editors", "-n", profiled.team)
    profiled.plane.kubectl("create", "rolebinding", "editors", *role)
    kind = f"{names.PROFILES}.gpufence.io"
    profiled.wait_until_allowed(editor, "patch", kind, "-n", profiled.team)

    config = {"KUBECONFIG": str(profiled.plane.kubeconfig(editor))}
    asked = ("auth", "can-i", "patch", kind, "--subresource=status", "-n", profiled.team)
    done = profiled.plane.kubectl(*asked, check=False, environment=config)

    assert "no" == done.stdout.strip()
