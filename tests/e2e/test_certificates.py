"""Certificates replaced in a running cluster."""

import json

import pytest

from gpufence import names
from tests.e2e.site import Json, RealSite, notes
from tests.e2e.tenants import pod

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROTATION = "rotate-now"


def trusted(site: RealSite) -> str:
    """Read whom the API server trusts when it calls the webhook."""
    hooks = site.get("mutatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]
    (bundle,) = {hook["clientConfig"]["caBundle"] for hook in hooks}
    return str(bundle)


def rotation(site: RealSite) -> Json:
    """
    Build the daily job, with the word that an operator would type instead of waiting for years.
    """
    arguments = ("create", "job", ROTATION, "--from=cronjob/gpufence-certs", "--dry-run=client")
    job: Json = json.loads(site.system(*arguments, "--output=json"))
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["gpufence-certs", "rotate", "--ca"]
    return job


def test_no_admission_suffers_from_a_new_authority(site: RealSite, team: str) -> None:
    """
    While authority and leaf are replaced under its feet, the webhook sees every pod.
    """
    before = trusted(site)
    site.apply(rotation(site))
    seen = []

    def finished() -> bool:
        seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))
        job = site.get("job", ROTATION, "--namespace", names.SYSTEM_NAMESPACE)
        assert "failed" not in job["status"], job["status"]
        return bool(job["status"].get("succeeded"))

    site.until(finished, "the authority was replaced", seconds=180)
    seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))
    site.system("delete", "job", ROTATION)

    assert {"yes"} == set(seen)
    assert before != trusted(site)
