"""
Asking agents for their snapshots: many at the same time, and none for much longer than the others
take to answer.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError, InvalidError, UnknownVersionError
from gpufence.names import SYSTEM_NAMESPACE
from gpufence.snapshot import read_snapshot
from gpufence.text import printable
from kube import ForbiddenError, NotFoundError, ReplyError, ServerError, UnreachableError
from kubectl_gpufence.cluster_view import NodeAgent
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpufence.snapshot import SnapshotCut
    from kubectl_gpufence.pods import StatusPod

MOST_ASKED: Final = 32
"""Agents that are asked at the same time: as many that hang cost no more than one of them."""
LATE_SECONDS: Final = 1.0
"""An agent that takes longer to give no answer costs those time who wait for all."""
SNAPSHOT: Final = "/v1/snapshot"
_PATIENCE_SECONDS: Final = 2.0


class AgentPatience:
    """
    How long an agent is waited for. Once enough have answered, who takes twenty times as long as
    they do is taken to hang, though not within a second: what agents answer is ready before they
    are asked, and in a large cluster some always hang.
    """

    FIRST_SECONDS: Final = 3.0
    LEAST_SECONDS: Final = LATE_SECONDS
    ENOUGH: Final = 20
    TIMES: Final = 20.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers = 0
        self._took = 0.0

    @property
    def seconds(self) -> float:
        if self._answers < self.ENOUGH:
            return self.FIRST_SECONDS
        mean = self._took / self._answers
        return min(self.FIRST_SECONDS, max(self.LEAST_SECONDS, self.TIMES * mean))

    def ask(self, read: Callable[[float], str]) -> str:
        """Read with so many seconds of patience, and learn from how many it took."""
        began = time.monotonic()
        text = read(self.seconds)
        with self._lock:
            self._answers += 1
            self._took += time.monotonic() - began
        return text


class AgentPods(NamedTuple):
    """
    The pods of agents, and why there are none; `hidden`: that is not to be known. `home` is the
    namespace of all that is installed.
    """

    pods: Sequence[StatusPod]
    note: str = ""
    hidden: bool = False
    home: str = SYSTEM_NAMESPACE


def ask_agents(
    pods: Iterable[StatusPod],
    page_of: Callable[[StatusPod], str],
    progress: Callable[[str], None],
    cut: SnapshotCut | None,
) -> tuple[NodeAgent, ...]:
    """
    Ask these agents, and say how many are waited for. Without a cut their snapshots are kept as a
    whole, and as text, too.
    """

    def ask(pod: StatusPod) -> NodeAgent:
        name, node = pod.name, pod.node
        if not pod.ready:
            # Its node is lost, or it has not started: asking would cost the whole patience.
            return NodeAgent(node, name, ready=False, trouble="its pod is not ready")
        since = time.monotonic()
        try:
            text = page_of(pod)
            snapshot = read_snapshot(text, cut)
            agent = NodeAgent(node, name, snapshot=snapshot, text=text if cut is None else "")
            if not agent.is_direct or node == snapshot.node:
                return agent
            where = f"the agent of node {snapshot.node} is at its address"
            return NodeAgent(node, name, trouble=where)
        except GpufenceError as error:
            return NodeAgent(
                node,
                name,
                trouble=silence_reason(error, pod.namespace),
                denied=isinstance(error, ForbiddenError),
                late=time.monotonic() - since >= LATE_SECONDS,
            )

    with ThreadPoolExecutor(MOST_ASKED, thread_name_prefix="ask") as pool:
        asked = [pool.submit(ask, pod) for pod in pods]
        while (waiting := wait(asked, timeout=_PATIENCE_SECONDS)).not_done:
            progress(f"waiting for {len(waiting.not_done)} of {counted(len(asked), 'agent')}")
        return tuple(item.result() for item in asked)


def silence_reason(error: GpufenceError, home: str) -> str:
    """Return why an agent gave no snapshot, so that equal reasons read alike."""
    match error:
        case ForbiddenError():
            return f"you may not ask agents: Role gpufence-viewer in {home} allows it"
        case NotFoundError():
            return "its pod is gone, or knows no snapshots"
        case ServerError():
            return f"it does not answer: {printable(error.failure.message)}"
        case ReplyError():
            return f"it refuses: {error.status} {printable(error.failure.message)}"
        case UnreachableError():
            return "it does not answer in time"
        case UnknownVersionError():
            return "it is newer than this plugin: upgrade the plugin"
        case InvalidError():
            return f"its answer is no snapshot: {printable(str(error))}"
        case _:
            return printable(str(error))
