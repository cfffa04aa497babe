"""The webhook as a real process, and what can be asked of it."""

import http.client
import signal
import ssl
from pathlib import Path

from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess


class Webhook(ServingProcess):
    """Runs `python -m webhook` on free ports; use it as a context manager."""

    def __init__(self, tls_dir: Path, trust: ssl.SSLContext, **settings: str) -> None:
        self.trust = trust
        environment = {
            "HOME": str(tls_dir),
            "GPUFENCE_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_TLS_DIR": str(tls_dir),
            "GPUFENCE_CLUSTER": "none",
            "GPUFENCE_DEFAULT_CARD": "15360Mi",
            "GPUFENCE_DRAIN_SECONDS": "0",
            **settings,
        }
        super().__init__(("webhook",), environment)

    @property
    def port(self) -> int:
        return self.port_of("listen")

    @property
    def status_port(self) -> int:
        return self.port_of("statusListen")

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def connect(self, trust: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            LOOPBACK, self.port, context=trust or self.trust, timeout=PATIENCE_SECONDS
        )

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a body on a connection of its own."""
        connection = self.connect()
        try:
            return ask(connection, "POST", path, body)
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        """Ask the status port."""
        connection = http.client.HTTPConnection(
            LOOPBACK, self.status_port, timeout=PATIENCE_SECONDS
        )
        try:
            status, body = ask(connection, "GET", path)
            return status, body.decode()
        finally:
            connection.close()

    def calls(self) -> float:
        """Count the reviews that were answered."""
        return self.metric("gpufence_webhook_requests_total")

    def metric(self, start: str) -> float:
        """Add up the lines of /metrics that begin so."""
        _, page = self.get("/metrics")
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()
