"""Valid certificates and objects; a test passes only what it is about."""

from typing import Any

from certs.issue import issue_ca, issue_leaf
from certs.material import DAY, Facts, KeyPair, ServiceNames
from gpufence.names import WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE
from kube import JsonObject

NOW = 1_790_000_000.0
NAMES = ServiceNames(WEBHOOK_SERVICE, "fencing")
HOOKS = ("observe.pods.gpufence.io", "cap.pods.gpufence.io")


def facts(**changes: Any) -> Facts:
    """A leaf as it is one day after it was issued."""
    given: dict[str, Any] = {
        "not_before": NOW - DAY,
        "not_after": NOW + 89 * DAY,
        "names": NAMES.all,
        "key_matches": True,
        "signed": True,
    }
    return Facts(**{**given, **changes})


def ca_and_leaf(now: float = NOW, names: ServiceNames = NAMES) -> tuple[KeyPair, KeyPair]:
    ca = issue_ca(now)
    return ca, issue_leaf(ca, names, now)


def configuration(*hooks: str) -> JsonObject:
    return {
        "metadata": {"name": WEBHOOK_CONFIGURATION},
        "webhooks": [
            {
                "name": name,
                "clientConfig": {"service": {"namespace": NAMES.namespace, "name": NAMES.service}},
                "failurePolicy": "Ignore",
            }
            for name in hooks or HOOKS
        ],
    }
