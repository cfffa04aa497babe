"""`verify --node NODE`: whether a node's driver does what gpufence assumes, tried by a Job."""

from __future__ import annotations

import copy
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gpufence.errors import GpufenceError
from gpufence.names import AGENT, RESERVE, WEBHOOK_SERVICE
from kube import NotFoundError, ReplyError, core, group
from kubectl_gpufence.arguments import add_output, node_name, patience
from kubectl_gpufence.reader import MissingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from kube import Client, JsonObject
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence verify --node gpu-1        takes memory of its cards for some seconds
  kubectl gpufence verify --node gpu-1 -o json > facts.json

A Job does it, with the image, tolerations and runtime class of the agent; it is deleted at the end.
exit code: 0 as assumed, 1 something differs, or nothing could be tried
"""

_NAME: Final = "gpufence-verify"
_LOOK_SECONDS: Final = 1.0
_KEPT_SECONDS: Final = 600
_OF_AGENTS_ALONE: Final = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
_CUDA: Final = {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"}


class UnansweredError(GpufenceError):
    """Raised where the Job does not come to an end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", required=True, metavar="NODE", type=node_name)
    parser.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="FRAMEWORK=COMMAND",
        help="as gpufence-agent verify has it, of a program in the agent's image",
    )
    help_text = "how long the Job may take, its image's download included (5m)"
    parser.add_argument("--timeout", type=patience, default=300.0, metavar="TIME", help=help_text)
    add_output(parser, "table", "json")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Run the Job, and print what it says; its exit code is ours.

    Raises:
        MissingError: there is no such node, or no agent to take the image from.
        UnansweredError: the Job's pod did not end in time.
    """
    reader.require_node(call.node)
    arguments = ["-o", call.output, *(f"--program={each}" for each in call.program)]
    home = reader.home()
    agents, reserves = _agents(reader.client, home), _reserves(reader.client, home)
    job = job_on(call.node, agents, arguments, max(1, round(call.timeout)), reserves)
    with _running(reader.client, home, job) as name:
        pod = _ended(reader, home, name, call.timeout)
        output.text(reader.client.text(core("namespaces", home, "pods", _name(pod), "log")))
    return 0 if _phase(pod) == "Succeeded" else 1


def job_on(
    node: str,
    agents: JsonObject,
    arguments: list[str],
    most_seconds: int,
    more: Sequence[JsonObject] = (),
) -> dict[str, Any]:
    """Return a Job for one node: the agent's pod with another command, and without its token."""
    template = copy.deepcopy(agents["spec"]["template"])
    pod: dict[str, Any] = template["spec"]
    for gone in ("serviceAccount", "serviceAccountName", "priorityClassName"):
        pod.pop(gone, None)
    container: dict[str, Any] = pod["containers"][0]
    for gone in _OF_AGENTS_ALONE:
        container.pop(gone, None)
    others = [each for each in container.get("env", []) if each["name"] != _CUDA["name"]]
    command = ["gpufence-agent", "verify", *arguments]
    container |= {"command": command, "env": [*others, *more, _CUDA]}
    notes = template["metadata"].get("annotations", {})  # by which the driver may come
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    pod |= {
        "containers": [container],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    }
    labels = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/part-of": "gpufence"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{_NAME}-", "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": most_seconds,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {"metadata": {"labels": labels, "annotations": notes}, "spec": pod},
        },
    }


def _agents(client: Client, home: str) -> JsonObject:
    try:
        return client.get(group("apps/v1", "namespaces", home, "daemonsets", AGENT))
    except NotFoundError as error:
        remedy = "install gpufence first, or run `gpufence-agent verify` on the machine itself"
        raise MissingError(f"there is no DaemonSet gpufence-agent; {remedy}") from error


def _reserves(client: Client, home: str) -> list[JsonObject]:
    """Return the webhook's variable of what is set for contexts already, as far as it is seen."""
    path = group("apps/v1", "namespaces", home, "deployments", WEBHOOK_SERVICE)
    try:
        (container, *_) = client.get(path)["spec"]["template"]["spec"]["containers"]
    except ReplyError:
        return []
    return [each for each in container.get("env", []) if each["name"] == RESERVE]


@contextmanager
def _running(client: Client, home: str, job: JsonObject) -> Iterator[str]:
    """Make the Job, and delete it with its pod whatever comes."""
    jobs = group("batch/v1", "namespaces", home, "jobs")
    name = _name(client.post(jobs, job))
    try:
        yield name
    finally:
        client.delete(f"{jobs}/{name}", {"propagationPolicy": "Background"})


def _ended(reader: ClusterReader, home: str, job: str, most_seconds: float) -> JsonObject:
    """Wait for the end of the Job's pod; what it waits for is said when that changes."""
    until, said = time.monotonic() + most_seconds, ""
    pods = core("namespaces", home, "pods")
    while True:
        query: dict[str, str | int] = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        pod = next(iter(reader.client.list(pods, query).items), None)
        if pod is not None and _phase(pod) in {"Succeeded", "Failed"}:
            return pod
        state = _state(pod, home)
        if state != said:
            said = state
            reader.progress(f"waiting for {job}: {state}")
        if time.monotonic() > until:
            raise UnansweredError(f"Job {job} did not end in {most_seconds:.0f} s: {state}")
        time.sleep(_LOOK_SECONDS)


def _state(pod: JsonObject | None, home: str) -> str:
    """Say why a pod has not ended: what its container waits for, or else its condition."""
    if pod is None:
        return f"it has no pod yet; `kubectl -n {home} get events` says why"
    status: dict[str, Any] = pod.get("status") or {}
    for each in status.get("containerStatuses") or ():
        if waiting := each.get("state", {}).get("waiting"):
            return f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
    refused = (each for each in status.get("conditions") or () if each.get("status") == "False")
    why = next((each["message"] for each in refused if each.get("message")), "")
    return f"{_phase(pod)} {why}".strip()


def _phase(pod: JsonObject) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _name(item: JsonObject) -> str:
    return str(item["metadata"]["name"])
