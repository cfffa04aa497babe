"""Certificates replaced in a running cluster."""

import base64

import pytest

from gpufence import names
from tests.e2e.site import OVERLAY, RealSite, notes, pod

pytestmark = pytest.mark.e2e

DAILY = "certs-now"


def trusted(site: RealSite) -> str:
    """Read whom the API server trusts when it calls the webhook."""
    hooks = site.get("mutatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]
    (bundle,) = {hook["clientConfig"]["caBundle"] for hook in hooks}
    return str(bundle)


def certificates(bundle: str) -> int:
    return base64.b64decode(bundle).count(b"BEGIN CERTIFICATE")


def test_no_admission_suffers_from_a_new_authority(site: RealSite, team: str) -> None:
    """While authority and leaf are replaced as the manual says, the webhook sees every pod."""
    before = trusted(site)
    site.system("patch", "secret", names.CA_SECRET, "--type=merge", "-p", '{"data":null}')
    site.cluster.kubectl("apply", "-k", OVERLAY)
    seen = []

    def replaced() -> bool:
        seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))
        now = trusted(site)
        return now != before and certificates(now) == 1

    site.until(replaced, "the authority was replaced", seconds=240)
    gone = f"clusterrole/{names.CERTS_INSTALL}"
    site.cluster.kubectl("wait", gone, "--for=delete", "--timeout=60s")
    seen.append(notes(site.admitted(pod(team, "any"))).get(names.INJECTED))

    assert {"yes"} == set(seen)


def test_the_daily_run_has_nothing_to_do(site: RealSite) -> None:
    """The CronJob's Job completes with the rights it has."""
    site.system("create", "job", DAILY, "--from=cronjob/gpufence-certs")
    site.system("wait", "job", DAILY, "--for=condition=complete", "--timeout=100s")
    said = site.system("logs", f"job/{DAILY}")
    site.system("delete", "job", DAILY)

    assert "nothing to do" in said
