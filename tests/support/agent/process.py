"""The agent as a real process: watched through its log and its pages."""

import http.client

from gpufence.snapshot import Snapshot, read_snapshot
from tests.support.observing import eventually
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, Line, ServingProcess

__all__ = ["QUICK", "AgentProcess", "Line"]

QUICK = {
    "GPUFENCE_INTERVAL_SECONDS": "0.2",
    "GPUFENCE_LIST_SECONDS": "0.4",
    "GPUFENCE_HOLD_SECONDS": "0.8",
    "GPUFENCE_SHORT_HOLD_SECONDS": "0.4",
    "GPUFENCE_GRACE_SECONDS": "0.2",
    "GPUFENCE_START_PAUSE_SECONDS": "0.2",
    "GPUFENCE_EVICTION_GRACE_SECONDS": "1",
    "GPUFENCE_NODE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NVML_DEADLINE_SECONDS": "1",
    "GPUFENCE_NVML_RESTART_SECONDS": "0.05",
    "GPUFENCE_NVML_RESTART_LIMIT_SECONDS": "0.1",
    "GPUFENCE_NVML_AVOID_SECONDS": "0.5",
    "GPUFENCE_UNMEASURED_SECONDS": "0.5",
    "GPUFENCE_REPEATED_HOLD_SECONDS": "0.8",
}


class AgentProcess(ServingProcess):
    """
    Runs `python -m agent`, or another module with its arguments, on a free port; use it as a
    context manager.
    """

    def __init__(self, *command: str, **settings: str) -> None:
        environment = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0", **QUICK, **settings}
        super().__init__(command or ("agent",), environment)

    @property
    def port(self) -> int:
        return self.port_of("statusListen")

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.get("/v1/snapshot")[1])

    def metrics(self) -> dict[str, float]:
        """Return every line of /metrics by its name and labels."""
        _, page = self.get("/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def outcomes(self, name: str) -> list[str]:
        """Return what the agent makes of a pod at the moment, for each card."""
        pods = [pod for pod in self.snapshot().pods if pod.name == name]
        return [use.outcome for pod in pods for use in pod.uses]

    def wait_for_outcome(self, name: str, *outcomes: str) -> None:
        reached = eventually(lambda: bool(set(self.outcomes(name)) & set(outcomes)))

        assert reached, f"{name} is not {outcomes}: {self.snapshot()} {self.lines[-5:]}"
