"""
kubectl understands what runbooks tell people to type, and alerts can be led to another website.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from simulator.controlplane import Assets
from simulator.controlplane.programs import KUBECTL
from tests.support.manifests import COMPONENTS
from tests.support.runbooks import FOLDER, every_command, runbooks

NOBODY = "http://127.0.0.1:9"  # where no API server is
COMMANDS = [
    line
    for line in every_command()
    if line.startswith("kubectl ")
    and not line.startswith(("kubectl gpufence ", "kubectl apply"))  # needs somebody's files
]


YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
WEBSITE = re.compile(r"website=(\S+)\]")


def kubectl(assets: Assets) -> Path:
    found = assets.find(KUBECTL)
    assert found
    return found


@pytest.mark.parametrize("line", COMMANDS)
def test_kubectl_understands_a_command(assets: Assets, line: str) -> None:
    """It gets as far as asking the API server."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'"$0" --server={NOBODY} {line.removeprefix("kubectl ")}',
            str(kubectl(assets)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "was refused" in done.stderr, done.stderr


def test_every_alert_can_be_led_to_another_website(assets: Assets, tmp_path: Path) -> None:
    """What the pages say to write into one's kustomization changes the address of each runbook."""
    (said,) = YAML.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    (website,) = WEBSITE.findall(said)
    component = os.path.relpath(COMPONENTS / "prometheus-operator", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(f"components: [{component}]\n{said}", "utf-8")
    done = subprocess.run(
        [kubectl(assets), "kustomize", tmp_path], capture_output=True, text=True, check=True
    )
    (rule,) = (item for item in yaml.safe_load_all(done.stdout) if item["kind"] == "PrometheusRule")
    rules = [each for group in rule["spec"]["groups"] for each in group["rules"]]

    assert sorted(f"{website}/docs/runbooks/{name}.md" for name in runbooks()) == sorted(
        each["annotations"]["runbook_url"] for each in rules
    )
