"""RabbitMQ, Debian's package, as a process of this test alone, and what else must be installed."""

import socket
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.keda.programs import free_ports
from simulator.workload.stomp import BrokerError, StompClient
from tests.support.running import program

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
INSTALL = "apt-get install --no-install-recommends rabbitmq-server"


def missing() -> list[str]:
    """Return the Debian packages that are not there."""
    places = {"rabbitmq-server": RABBITMQ, "prometheus": program("prometheus")}
    return [name for name, path in places.items() if not path.exists()]


class Broker:
    """A running RabbitMQ: where STOMP, AMQP and its metrics are."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(5)
        self.stomp, self.amqp, self.metrics, self._distribution, self._epmd = ports
        self._folder = folder / "rabbitmq"
        self._folder.mkdir()

    @property
    def address(self) -> str:
        return f"amqp://guest:guest@{LOOPBACK}:{self.amqp}/"

    @contextmanager
    def running(self, pace: float) -> Iterator[None]:
        """Run it; what it counts every five seconds it counts by so much more often."""
        plugins = self._folder / "plugins"
        plugins.write_text("[rabbitmq_stomp,rabbitmq_prometheus].\n")
        config = self._folder / "rabbitmq.conf"
        lines = (
            f"listeners.tcp.1 = {LOOPBACK}:{self.amqp}",
            f"stomp.listeners.tcp.1 = {LOOPBACK}:{self.stomp}",
            f"prometheus.tcp.ip = {LOOPBACK}",
            f"prometheus.tcp.port = {self.metrics}",
            "prometheus.return_per_object_metrics = true",
            f"collect_statistics_interval = {int(5000 / pace)}",
            "log.console = true",
            "log.console.level = warning",
        )
        config.write_text("\n".join(lines) + "\n")
        environment = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": f"gpufence-{self.amqp}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": LOOPBACK,
        }
        process = GuardedProcess(
            [str(RABBITMQ)],
            Surroundings(self._folder, environment),
            log=self._folder / "rabbitmq.log",
        )
        try:
            wait_until(self._is_ready, [process], START_SECONDS, "RabbitMQ took a connection")
            yield
        finally:
            process.end()
            self._stop_epmd()

    def client(self) -> StompClient:
        return StompClient(LOOPBACK, self.stomp)

    def _is_ready(self) -> bool:
        try:
            self.client().close()
            urllib.request.urlopen(f"http://{LOOPBACK}:{self.metrics}/metrics", timeout=5).close()
        except (BrokerError, OSError):
            return False
        return True

    def _stop_epmd(self) -> None:
        """Erlang's directory of nodes outlives them; it ends when it is asked to."""
        try:
            with socket.create_connection((LOOPBACK, self._epmd), 2) as asked:
                asked.sendall(b"\x00\x01k")
                asked.recv(2)
        except OSError:
            return


def packages_line(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} must be installed: {INSTALL}"
