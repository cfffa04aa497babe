"""Programs of others, as a person runs them: Helm, and Debian's Prometheus."""

import json
import math
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.keda.programs import free_ports
from tests.support.running import program
from tests.support.site import surroundings
from tools.manifests import DEPLOY, REGISTRY

CHART = DEPLOY / "chart"
FROM = f"--set=image.registry={REGISTRY}"


class Helm:
    """Runs Helm against one cluster, or against none."""

    def __init__(self, program: Path, home: Path, kubeconfig: Path | None = None) -> None:
        self.program = program
        self._environment = {"HOME": str(home), "HELM_NAMESPACE": "default"}
        if kubeconfig:
            self._environment["KUBECONFIG"] = str(kubeconfig)

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.program, *arguments],
            env=surroundings(self._environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def template(self, *arguments: str, kubernetes: str = "1.37.0") -> str:
        given = ("--kube-version", kubernetes, FROM, *arguments)
        done = self("template", "gpufence", str(CHART), *given)
        return done.stdout


_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_ANSWER_SECONDS = 5.0


class Target(NamedTuple):
    """A page to scrape, the labels it gets, and whether its own win over those."""

    address: str
    labels: Mapping[str, str] = {}
    honor_labels: bool = False


class Series(NamedTuple):
    labels: Mapping[str, str]
    value: float


class Prometheus(NamedTuple):
    url: str

    def query(self, promql: str) -> list[Series]:
        """Ask for what there is at this moment; what is no number is left out."""
        address = f"{self.url}/api/v1/query?{urlencode({'query': promql})}"
        with urllib.request.urlopen(address, timeout=_ANSWER_SECONDS) as answer:
            data = json.load(answer)["data"]
        if data["resultType"] == "scalar":
            return [Series({}, float(data["result"][1]))]
        found = (Series(item["metric"], float(item["value"][1])) for item in data["result"])
        return [series for series in found if not math.isnan(series.value)]


@contextmanager
def prometheus(
    folder: Path, targets: Mapping[str, Target], interval_seconds: float
) -> Iterator[Prometheus]:
    """Scrape pages that often."""
    (port,) = free_ports(1)
    home = folder / "prometheus"
    home.mkdir()
    jobs = [
        {
            "job_name": name,
            "honor_labels": target.honor_labels,
            "static_configs": [{"targets": [target.address], "labels": dict(target.labels)}],
        }
        for name, target in targets.items()
    ]
    interval = f"{int(interval_seconds * 1000)}ms"
    settings = {"global": {"scrape_interval": interval}, "scrape_configs": jobs}
    (home / "prometheus.yml").write_text(json.dumps(settings))
    address = f"{_LOOPBACK}:{port}"
    command = [
        str(program("prometheus")),
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    environment = {"PATH": os.defpath, "HOME": str(home), "GOMAXPROCS": "1"}
    process = GuardedProcess(command, Surroundings(home, environment))
    try:
        ready = f"http://{address}/-/ready"
        wait_until(lambda: answers(ready), [process], _START_SECONDS, address)
        yield Prometheus(f"http://{address}")
    finally:
        process.end()
        shutil.rmtree(home, ignore_errors=True)


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError:
        return False
    return True
