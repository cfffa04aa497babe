"""
gpufence's own manifests, as they are but for the address at which the API server finds the webhook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from simulator.demo.narrator import StoryError

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "base"
HOOKS = "MutatingWebhookConfiguration"
_LEFT_OUT = frozenset(
    {"Deployment", "DaemonSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job", "CronJob"}
)


def objects(*parts: str) -> list[dict[str, Any]]:
    """
    Return the objects of parts of the installation that mean something without containers.
    """
    found = [item for part in parts for item in _of_part(part)]
    return [item for item in found if item["kind"] not in _LEFT_OUT]


def _of_part(part: str) -> list[dict[str, Any]]:
    folder = DEPLOY / part
    if not folder.is_dir():
        raise StoryError(f"{folder} does not exist; run the demo from a checkout of gpufence")
    order = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    texts = [(folder / name).read_text(encoding="utf-8") for name in order]
    return [item for text in texts for item in yaml.safe_load_all(text) if item]


def pointing_to(item: dict[str, Any], address: str) -> dict[str, Any]:
    """
    Return the webhook configuration with URLs of this machine instead of a Service.
    """
    for hook in item["webhooks"]:
        service = hook["clientConfig"].pop("service")
        hook["clientConfig"]["url"] = f"https://{address}{service['path']}"
    return item
