"""What a person sees who may view one namespace, where a real agent writes pods' conditions."""

import json
from pathlib import Path

from gpufence import names
from kube import core
from tests.support.agent.node_site import WITHIN, Ground, NodeSite, fenced_pod, place
from tests.support.observing import wait_until

TENANT = "tenant"


def viewer_of(site: NodeSite, namespace: str) -> Path:
    """Make an account that may view this namespace; a controller would fill `view` itself."""
    site.admin.post(
        core("namespaces", namespace, "serviceaccounts"), {"metadata": {"name": TENANT}}
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    binding = {
        "metadata": {"name": "view"},
        "roleRef": {**role, "name": "system:aggregate-to-view"},
        "subjects": [{"kind": "ServiceAccount", "name": TENANT, "namespace": namespace}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    site.admin.post(path, binding)
    token = site.plane.service_account_token(namespace, TENANT)
    return site.plane.token_kubeconfig(f"{TENANT}-{namespace}", token)


def says(ground: Ground, name: str) -> str:
    conditions = ground.status(name).get("conditions", [])
    said = [item["message"] for item in conditions if item["type"] == names.GPU_MEMORY]
    return "".join(said)


def test_a_person_who_may_view_one_namespace_sees_its_use_and_no_others(
    site: NodeSite, namespace: str
) -> None:
    """`top` and `explain` read it from the pods, which their owner cannot write it into."""
    with site.plane.fresh_namespace("neighbours") as others:
        mine, theirs = site.ground(namespace), site.ground(others)
        config = viewer_of(site, namespace)
        with site.agent():
            place(mine, fenced_pod("mine", WITHIN))
            place(theirs, fenced_pod("theirs", WITHIN))
            wait_until(lambda: "1124 of 2048" in says(mine, "mine"), says(mine, "mine"))
            wait_until(lambda: "1124 of 2048" in says(theirs, "theirs"), says(theirs, "theirs"))
        table = site.plugin("top", "-n", namespace, kubeconfig=config)
        rows = site.plugin("top", "-n", namespace, "-o", "json", kubeconfig=config)
        told = site.plugin("explain", "-n", namespace, "mine", kubeconfig=config)
        refused = site.plugin("top", "-n", others, kubeconfig=config)
        forged = site.plane.kubectl(
            *("auth", "can-i", "patch", "pods", "--subresource=status", "-n", namespace),
            check=False,
            environment={"KUBECONFIG": str(config)},
        )
        (row,) = json.loads(rows.stdout)["pods"]

        assert ("mine", "1124Mi", "WithinLimit") == (
            row["name"],
            row["used"],
            row["said"]["reason"],
        )
        assert row["said"]["at"]
        assert "~1124Mi" in table.stdout
        assert "~ is what pods say of themselves" in table.stderr
        assert "card 0: about 1124Mi of 2048Mi (55%)" in told.stdout
        assert "theirs" not in table.stdout + rows.stdout + told.stdout
        assert (1, "no") == (refused.returncode, forged.stdout.strip())
        site.clear()
