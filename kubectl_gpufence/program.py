"""
One call from beginning to end: find the cluster, run the verb, tell errors in a sentence.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING

from kube import connect, read_client_settings
from kubectl_gpufence.cluster import WORKERS, Cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from kube import ClientSettings
    from kubectl_gpufence.terminal import Terminal

_AGENT_SECONDS = 5.0


def run(call: argparse.Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """
    Run a verb and return its exit code.

    Raises:
        KubeError: there is no cluster, or it does not answer, or refuses what all else stands on.
    """
    with connect(settings_for(call, environ)) as client:
        patience = min(_AGENT_SECONDS, call.request_timeout)
        if not call.namespace and not getattr(call, "all_namespaces", False):
            call.namespace = client.namespace or "default"
        verb = importlib.import_module(f"kubectl_gpufence.verbs.{call.verb}")
        code: int = verb.run(call, Cluster(client, patience, terminal.progress), terminal)
        return code


def settings_for(call: argparse.Namespace, environ: Mapping[str, str]) -> ClientSettings:
    """
    Find the cluster as kubectl does, with as many connections as we ask at the same time.
    """
    said = read_client_settings(environ, user_agent="kubectl-gpufence")
    return replace(
        said,
        kubeconfig=call.kubeconfig or said.kubeconfig,
        context=call.context,
        connect_timeout_seconds=min(said.connect_timeout_seconds, call.request_timeout),
        reply_timeout_seconds=call.request_timeout,
        pool_connections=WORKERS,
    )
