"""The controller as a real process, told to decide within seconds."""

import http.client
import json
from typing import Any

from tests.support.observing import wait_until
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess

QUICK = {
    "GPUFENCE_PASS_SECONDS": "0.2",
    "GPUFENCE_KINDS_SECONDS": "1",
    "GPUFENCE_PROFILE_SECONDS": "0.2",
    "GPUFENCE_REQUEST_SECONDS": "1",
    "GPUFENCE_AGENT_SECONDS": "1",
    "GPUFENCE_LEASE_SECONDS": "4",
    "GPUFENCE_LEASE_RENEW_SECONDS": "3",
    "GPUFENCE_LEASE_RETRY_SECONDS": "0.3",
    "GPUFENCE_IDLE_SECONDS": "1",
    "GPUFENCE_RELEASE_AFTER_SECONDS": "2",
    "GPUFENCE_RELEASE_LEAST_SECONDS": "0.5",
    "GPUFENCE_RELEASE_NOTICE_SECONDS": "0.5",
    "GPUFENCE_RELEASE_WARM_UP_SECONDS": "0",
    "GPUFENCE_RELEASE_PEACE_SECONDS": "0",
    "GPUFENCE_RELEASE_FREE_SECONDS": "0.5",
    "GPUFENCE_RELEASE_WAITING_SECONDS": "0",
    "GPUFENCE_RELEASE_PER_MINUTE": "1000",
    "GPUFENCE_RELEASE_SUSPEND_PODS": "10000",
}


class ControllerProcess(ServingProcess):
    """Runs `python -m controller`; use it as a context manager."""

    def __init__(self, **settings: str) -> None:
        listen = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"}
        super().__init__(("controller", "run"), {**listen, **QUICK, **settings})

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port_of('statusListen')}"

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        port = self.port_of("statusListen")
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def activity(self, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
        status, body = self.get(f"/v1/activity/{path}", token)
        return status, json.loads(body)

    def owners(self) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(self.get("/v1/owners")[1])
        return page

    def owner(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what it shows of an owner; nothing where it shows none."""
        found = self.owners()["owners"]
        keys = ("namespace", "name")
        return next(
            (item for item in found if [item[key] for key in keys] == [namespace, name]), {}
        )

    def why_never(self, namespace: str, name: str) -> str:
        """Wait until it is said why an owner is never released."""
        self.wait_until_leading()

        def said() -> str:
            shown = self.owner(namespace, name)
            words = str(shown.get("why", ""))
            early = "too old" in words or "has not been read yet" in words
            return "" if shown.get("way") != "never" or early else words

        wait_until(said, self.owners)
        return said()

    def metrics(self) -> dict[str, float]:
        """Return every line of /metrics by its name and labels."""
        _, page = self.get("/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def acts(self, step: str, outcome: str = "done") -> int:
        line = f'gpufence_controller_acts_total{{step="{step}",outcome="{outcome}"}}'
        return int(self.metrics().get(line, 0))

    def wait_until_leading(self) -> None:
        wait_until(
            lambda: (
                self.metrics().get("gpufence_controller_leader")
                and self.metrics().get("gpufence_controller_fresh")
            ),
            "it neither leads nor knows the cluster",
        )
