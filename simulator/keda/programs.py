"""
KEDA for as long as a block of code runs: its resources, its operator, and its metrics adapter.

Both are plain processes with an administrator's rights beside the control plane, which must have
been started with `aggregation` and a controller manager. The API server reaches the adapter by a
Service that is a name for this machine.
"""

from __future__ import annotations

import base64
import json
import os
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from simulator.controlplane.errors import StartError
from simulator.controlplane.identities import SimulatedAuthority, write_secret
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.controlplane.programs import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from simulator.controlplane import ControlPlane
    from simulator.keda.build import KedaPrograms

NAMESPACE = "keda"
READY_SECONDS = 120.0
_ADAPTER_SERVICE = "keda-metrics-apiserver"
_GROUP = "external.metrics.k8s.io"
_READER = "keda-external-metrics-reader"
_AUTHORIZATION = "rbac.authorization.k8s.io"


class Keda:
    """A running KEDA; entering its block starts it and waits until the API server reaches it."""

    def __init__(self, plane: ControlPlane, programs: KedaPrograms, folder: Path) -> None:
        self._plane = plane
        self._programs = programs
        self._folder = folder
        self._undo = ExitStack()
        self.operator: GuardedProcess
        self.adapter: GuardedProcess

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._start(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _start(self, undo: ExitStack) -> None:
        certificates = self._folder / "keda-certs"
        certificates.mkdir()
        authority = SimulatedAuthority()
        pair = authority.for_server(f"{_ADAPTER_SERVICE}.{NAMESPACE}.svc")
        for name, content in (
            ("ca.crt", authority.pair.certificate),
            ("tls.crt", pair.certificate),
            ("tls.key", pair.key),
        ):
            write_secret(certificates / name, content)
        metrics, probes, service, secure, port = free_ports(5)
        self._install(authority.pair.certificate, secure)
        config = self._plane.kubeconfig()
        surroundings = Surroundings(self._folder, _environment(config))
        self.operator = GuardedProcess(
            [
                str(self._programs.operator),
                f"--kubeconfig={config}",
                f"--cert-dir={certificates}",
                f"--ca-dir={certificates}",
                "--enable-webhook-patching=false",
                "--enable-apiservice-patching=false",
                f"--metrics-bind-address={LOOPBACK}:{metrics}",
                f"--health-probe-bind-address={LOOPBACK}:{probes}",
                f"--metrics-service-bind-address={LOOPBACK}:{service}",
                "--zap-log-level=info",
                "--kube-api-qps=200",
                "--kube-api-burst=200",
            ],
            surroundings,
        )
        undo.callback(self.operator.end)
        self.adapter = GuardedProcess(
            [
                str(self._programs.adapter),
                f"--kubeconfig={config}",
                f"--authentication-kubeconfig={config}",
                f"--authorization-kubeconfig={config}",
                f"--lister-kubeconfig={config}",
                f"--bind-address={LOOPBACK}",
                f"--secure-port={secure}",
                f"--port={port}",
                f"--metrics-service-address={LOOPBACK}:{service}",
                f"--client-ca-file={self._plane.ca_file}",
                f"--cert-dir={certificates}",
                f"--tls-cert-file={certificates / 'tls.crt'}",
                f"--tls-private-key-file={certificates / 'tls.key'}",
                "--kube-api-qps=200",
                "--kube-api-burst=200",
            ],
            surroundings,
        )
        undo.callback(self.adapter.end)
        wait_until(
            self._is_ready, [self.operator, self.adapter], READY_SECONDS, "KEDA's metrics were read"
        )

    def _install(self, authority: bytes, port: int) -> None:
        for path in sorted(self._programs.resources.glob("*.yaml")):
            self._plane.kubectl("apply", "--server-side", "-f", str(path))
        items = _objects(base64.b64encode(authority).decode(), port)
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        self._plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))

    def _is_ready(self) -> bool:
        path = f"/apis/{_GROUP}/v1beta1"
        return self._plane.kubectl("get", "--raw", path, check=False).returncode == 0


def _environment(config: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(config.parent),
        "KUBECONFIG": str(config),
        "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
        "POD_NAMESPACE": NAMESPACE,
        "POD_NAME": "keda-0",
        "WATCH_NAMESPACE": "",
    }


def _objects(authority: str, port: int) -> list[dict[str, object]]:
    """
    Make what KEDA's own manifests have besides Deployments, as far as an administrator needs it.
    """
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _ADAPTER_SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{_GROUP}"},
            "spec": {
                "service": {"name": _ADAPTER_SERVICE, "namespace": NAMESPACE, "port": port},
                "group": _GROUP,
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "caBundle": authority,
            },
        },
        {
            "apiVersion": f"{_AUTHORIZATION}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": _READER},
            "rules": [{"apiGroups": [_GROUP], "resources": ["*"], "verbs": ["*"]}],
        },
        {
            "apiVersion": f"{_AUTHORIZATION}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _READER},
            "roleRef": {"apiGroup": _AUTHORIZATION, "kind": "ClusterRole", "name": _READER},
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": "horizontal-pod-autoscaler",
                    "namespace": "kube-system",
                }
            ],
        },
    ]


def free_ports(count: int) -> list[int]:
    """Find ports that nobody has at the moment: KEDA's programs share theirs with nobody."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    except OSError as error:
        raise StartError(f"no free port on {LOOPBACK}: {error}") from error
    finally:
        for one in sockets:
            one.close()
