"""What has to hold whenever nobody answers for us."""

import time

from tests.support import objects
from tests.support.webhook_site import WebhookSite, annotations_of

POD_SECONDS = 3.0
BINDING_SECONDS = 1.0
SPARE_SECONDS = 5.0  # of a busy machine; without a timeout of ours it would take 10 s, or 60


def assert_made_and_bound(site: WebhookSite, seconds: float = POD_SECONDS) -> None:
    """Create a pod in `cap` and bind it: both pass in time, without us, and are counted."""
    before = site.fail_opens()
    with site.namespace("cap") as name:
        began = time.monotonic()
        created = site.create(name, objects.gpu_pod("trainer"))
        made = time.monotonic()
        site.bind(name, created, "nowhere")
        bound = time.monotonic()
        found = site.pod(name, "trainer")

    assert {} == annotations_of(found)
    assert "nowhere" == found["spec"]["nodeName"]
    assert made - began < seconds + SPARE_SECONDS
    assert bound - made < BINDING_SECONDS + SPARE_SECONDS
    assert before + 1 == site.fail_opens()
