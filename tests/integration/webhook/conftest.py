"""
One webhook on one control plane for the folder, and one with a scheduler for those who need it.
"""

from collections.abc import Iterator

import pytest

from simulator.controlplane import ControlPlane
from tests.support.authority import Authority
from tests.support.webhook_site import Webhook, WebhookSite


@pytest.fixture(scope="package")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="package")
def site(
    control_plane: ControlPlane, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookSite]:
    """Lend a control plane with gpufence's objects, no hook registered."""
    with WebhookSite(control_plane, authority, tmp_path_factory.mktemp("tls")) as made:
        made.install()
        yield made
        made.remove()


@pytest.fixture(scope="package")
def full_site(
    full_control_plane: ControlPlane, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookSite]:
    """Lend the same with scheduler and controllers."""
    folder = tmp_path_factory.mktemp("tls")
    with WebhookSite(full_control_plane, authority, folder, full=True) as made:
        made.install()
        yield made
        made.remove()


@pytest.fixture(scope="module")
def webhook(site: WebhookSite) -> Iterator[Webhook]:
    """Lend a webhook that the API server calls."""
    with site.webhook() as running, site.calling(running.port, running.calls):
        before = site.fail_opens()
        yield running
        assert_no_bug(running)
        assert_nobody_passed(site, before)


@pytest.fixture(scope="module")
def full_webhook(full_site: WebhookSite) -> Iterator[Webhook]:
    """Lend a webhook that the API server with the scheduler calls."""
    with full_site.webhook() as running, full_site.calling(running.port, running.calls):
        before = full_site.fail_opens()
        yield running
        assert_no_bug(running)
        assert_nobody_passed(full_site, before)


def assert_no_bug(webhook: Webhook) -> None:
    """Whatever a module's tests did, no review was answered with an error of ours."""
    assert [] == [line for line in webhook.lines if line.get("level") == "error"]


def assert_nobody_passed(site: WebhookSite, before: float) -> None:
    """The API server never went on without the webhook's answer."""
    assert before == site.fail_opens()
