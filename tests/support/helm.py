"""Helm as a person types it, with none of that person's own settings."""

import subprocess
from pathlib import Path

from tests.support.manifests import DEPLOY, REGISTRY
from tests.support.site import surroundings

CHART = DEPLOY / "chart"
FROM = f"--set=image.prefix={REGISTRY}"


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
