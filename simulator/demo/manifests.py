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
_LEFT_OUT = frozenset({"Deployment", "Service", "PodDisruptionBudget", "Job", "CronJob"})


def objects(part: str) -> list[dict[str, Any]]:
    """
    Return the objects of a part of the installation that mean something without containers.
    """
    folder = DEPLOY / part
    if not folder.is_dir():
        raise StoryError(f"{folder} does not exist; run the demo from a checkout of gpufence")
    order = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    texts = [(folder / name).read_text(encoding="utf-8") for name in order]
    found = [item for text in texts for item in yaml.safe_load_all(text) if item]
    return [item for item in found if item["kind"] not in _LEFT_OUT]


def pointing_to(item: dict[str, Any], address: str) -> dict[str, Any]:
    """
    Return the webhook configuration with URLs of this machine instead of a Service.
    """
    for hook in item["webhooks"]:
        service = hook["clientConfig"].pop("service")
        hook["clientConfig"]["url"] = f"https://{address}{service['path']}"
    return item
