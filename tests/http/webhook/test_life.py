"""Starting with mistakes, and ending without losing anybody."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.authority import Authority
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS
from tests.support.rewriting import encoded, review
from tests.support.webhook_site import Webhook, ask
from webhook.server import LAST_ANSWERS_SECONDS

CAP = "/v1/pods/cap"


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "PYTHONPATH"} or name.startswith("COVERAGE_")
    }
    return subprocess.run(
        [sys.executable, "-m", "webhook", *arguments],
        env=environment | {"HOME": "/nonexistent"} | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_a_request_under_way_is_answered_at_the_end(authority: Authority, tls_dir: Path) -> None:
    """A review that has begun when SIGTERM comes still gets its answer."""
    body = encoded(review())
    with Webhook(tls_dir, authority.client_context()) as webhook:
        connection = webhook.connect()
        connection.putrequest("POST", CAP)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:10])
        webhook.signal(signal.SIGTERM)
        webhook.wait_for("SIGTERM")
        connection.send(body[10:])
        status = connection.getresponse().status
        connection.close()

        assert 200 == status
        assert 0 == webhook.process.wait(PATIENCE_SECONDS)


def test_draining_serves_on_and_sends_callers_elsewhere(
    authority: Authority, tls_dir: Path
) -> None:
    """After SIGTERM it is not ready, but answers, and asks each caller to leave its connection."""
    settings = {"GPUFENCE_DRAIN_SECONDS": "60"}
    with Webhook(tls_dir, authority.client_context(), **settings) as webhook:
        connection = webhook.connect()
        ask(connection, "POST", CAP, encoded(review()))
        webhook.signal(signal.SIGTERM)
        webhook.wait_for("SIGTERM")
        ready = webhook.get("/readyz")
        connection.request("POST", CAP, encoded(review()))
        response = connection.getresponse()
        response.read()
        new = webhook.post(CAP, encoded(review()))[0]

        assert (503, "the server is ending\n") == ready
        assert (200, "close") == (response.status, response.getheader("Connection"))
        assert 200 == new


def test_a_second_signal_ends_the_draining(authority: Authority, tls_dir: Path) -> None:
    """Whoever is in a hurry says it twice."""
    settings = {"GPUFENCE_DRAIN_SECONDS": "600"}
    with Webhook(tls_dir, authority.client_context(), **settings) as webhook:
        webhook.signal(signal.SIGTERM)
        webhook.wait_for("SIGTERM")
        webhook.signal(signal.SIGINT)

        assert 0 == webhook.process.wait(PATIENCE_SECONDS)


def test_an_idle_connection_does_not_hold_up_the_end(authority: Authority, tls_dir: Path) -> None:
    """
    A kept connection that nobody uses, and whose owner does not even listen, costs seconds at most.
    """
    with Webhook(tls_dir, authority.client_context()) as webhook:
        connection = webhook.connect()
        ask(connection, "POST", CAP, encoded(review()))
        webhook.signal(signal.SIGTERM)
        code = webhook.process.wait(LAST_ANSWERS_SECONDS + 20)
        connection.close()

        assert 0 == code


def test_the_effective_settings_are_logged_once(webhook: Webhook) -> None:
    """The log begins with what holds."""
    (line,) = [line for line in webhook.lines if line["message"] == "settings"]

    assert ("none", "info", 0.8) == tuple(
        line[key] for key in ("cluster", "log_level", "api_deadline_seconds")
    )
    assert 16106127360 == line["policy"]["card_bytes"]


def test_an_unknown_setting_is_warned_about(authority: Authority, tls_dir: Path) -> None:
    """A misspelt variable is named, and nothing else comes of it."""
    settings = {"GPUFENCE_DRIAN_SECONDS": "3"}
    with Webhook(tls_dir, authority.client_context(), **settings) as webhook:
        line = webhook.wait_for("GPUFENCE_DRIAN_SECONDS is no setting")

        assert "warning" == line["level"]


def test_an_address_that_is_taken_is_named() -> None:
    """The message says which setting to change."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        done = run(
            GPUFENCE_LISTEN=f"{LOOPBACK}:0",
            GPUFENCE_STATUS_LISTEN=f"{LOOPBACK}:{port}",
            GPUFENCE_CLUSTER="none",
        )

    assert 2 == done.returncode
    assert f"GPUFENCE_STATUS_LISTEN: cannot listen on {LOOPBACK}:{port}" in done.stderr


NOWHERE = {"GPUFENCE_LISTEN": f"{LOOPBACK}:0", "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"}
WRONG = {
    "GPUFENCE_LISTEN": "nowhere",
    "GPUFENCE_DEFAULT_CARD": "much",
    "GPUFENCE_CLUSTER": "none",
}


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "words"),
    [
        (("--help",), {}, 0, ["GPUFENCE_LISTEN", "GPUFENCE_DRAIN_SECONDS"]),
        (("serve", "--help"), {}, 0, ["GPUFENCE_LISTEN", "GPUFENCE_DRAIN_SECONDS"]),
        (("rewrite", "--help"), {}, 0, ["--namespace-annotation"]),
        (("sevre",), {}, 2, ["invalid choice: 'sevre'"]),
        ((), NOWHERE, 2, ["set KUBECONFIG"]),
        (
            (),
            WRONG,
            2,
            [
                'GPUFENCE_LISTEN: "nowhere" is not an address; write host:port',
                'GPUFENCE_DEFAULT_CARD: "much"',
            ],
        ),
    ],
    ids=["help", "help of one", "the other command", "typing error", "no cluster", "mistakes"],
)
def test_what_a_person_is_told_before_it_begins(
    arguments: tuple[str, ...], settings: dict[str, str], code: int, words: list[str]
) -> None:
    """Every setting without opening the source; every mistake, with its remedy and no trace."""
    done = run(*arguments, **settings)

    assert code == done.returncode
    assert [] == [word for word in words if word not in done.stdout + done.stderr]
    assert "Traceback" not in done.stderr
