"""
Keep one Report in each fenced namespace, where there is such a kind; whoever holds the Lease
writes. On a thread of its own, and no agent is asked while nobody wants to know.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.store import LiveStore
from controller.reports.asking import PodAsking
from controller.reports.document import (
    NAME,
    REPORT,
    keep_report,
    report_of,
    said_by,
)
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.mode import namespace_mode
from kube import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    PatchType,
    Source,
    group,
)
from kube.optional import OptionalWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controller.cluster.kept import NamespaceWords
    from controller.loop import LastPass
    from controller.reports.document import KeptReport, ReportLine
    from controller.settings import ControllerSettings
    from gpufence.mode import Mode
    from gpufence.snapshot import Snapshot
    from kube import Client

_log = logging.getLogger(__name__)

_OURS: Final = {"fieldSelector": f"metadata.name={NAME}"}
_FORCED: Final = {"fieldManager": names.CONTROLLER, "force": "true"}


class ReportSources(NamedTuple):
    """
    `left` tells for how many seconds the Lease is ours, `last` what the last pass over the cluster
    found, `namespaces` what those say, `agents` what the agents of a few nodes see.
    """

    left: Callable[[], float]
    last: Callable[[], LastPass | None]
    namespaces: Callable[[], Mapping[str, NamespaceWords]]
    agents: Callable[[Sequence[str]], Mapping[str, Snapshot | None]]


class ReportKeeper:
    """`outcomes` counts what became of writes, by step."""

    def __init__(
        self, client: Client, sources: ReportSources, settings: ControllerSettings
    ) -> None:
        self._client = client
        self._sources = sources
        self._settings = settings
        self._seconds = settings.request_seconds
        self._reports: LiveStore[KeptReport] = LiveStore()
        source = Source(
            path=group(names.REPORT_GROUP, names.REPORTS), keep=keep_report, query=_OURS
        )
        self._watch = OptionalWatch(
            client, source, self._reports, ask_seconds=settings.kinds_seconds
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._asking = PodAsking(sources.agents, settings, self._acts, self._stop.wait)
        # What a server that knows fewer fields has made of what was written.
        self._written: dict[str, tuple[bytes, str]] = {}
        self.outcomes: Counter[tuple[str, str]] = Counter()

    @property
    def count(self) -> int:
        """Return how many Reports of ours are in view."""
        return sum(kept.ours for kept in self._reports.items.values())

    def start(self) -> None:
        self._watch.start()
        self._thread.start()

    def stop(self, seconds: float) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        self._watch.stop()

    def _run(self) -> None:
        while not self._stop.wait(self._settings.reports.pass_seconds):
            try:
                self.turn()
            except GpufenceError as error:
                _log.warning("reports wait: %s", error)
            except Exception:  # noqa: BLE001 - a bug in one pass must not end the passes
                _log.exception("a pass over reports failed")

    def turn(self) -> None:
        """Bring all Reports up to date. Raises KubeError."""
        last = self._sources.last()
        if not self._acts() or not self._watch.synced or last is None or not last.state.fresh:
            return  # somebody else may write them meanwhile, or nothing may be believed
        fenced = self._fenced()
        lines = self._asking.lines(last.state, fenced)
        if lines is None:
            return
        for namespace in sorted(fenced):
            if not self._acts():
                return
            self._keep_up(namespace, lines.get(namespace, ()))
        for namespace, kept in self._reports.items.items():
            if namespace not in fenced and kept.ours and self._acts():
                self._carry_out("delete", namespace, partial(self._delete, namespace, kept))
        self._written = {key: said for key, said in self._written.items() if key in fenced}

    def _acts(self) -> bool:
        return not self._stop.is_set() and self._sources.left() > self._seconds

    def _fenced(self) -> dict[str, Mode]:
        modes = {
            name: namespace_mode(words.labels) for name, words in self._sources.namespaces().items()
        }
        exempt = self._settings.exempt_namespaces
        return {name: mode for name, mode in modes.items() if mode and name not in exempt}

    def _keep_up(self, namespace: str, lines: Collection[ReportLine]) -> None:
        report = report_of(namespace, lines, self._settings.reports.results)
        said, kept = said_by(report), self._reports.items.get(namespace)
        if kept is not None and kept.ours:
            written = self._written.get(namespace)
            if said == kept.said or written == (said, kept.version):
                return
        self._carry_out("apply", namespace, partial(self._apply, namespace, report, said))

    def _apply(self, namespace: str, report: dict[str, object], said: bytes) -> None:
        written = self._client.patch(
            REPORT.path(namespace, NAME),
            report,
            PatchType.APPLY,
            _FORCED,
            timeout_seconds=self._seconds,
        )
        self._written[namespace] = said, str(written["metadata"]["resourceVersion"])

    def _delete(self, namespace: str, kept: KeptReport) -> None:
        condition = {"preconditions": {"uid": kept.uid, "resourceVersion": kept.version}}
        path = REPORT.path(namespace, NAME)
        self._client.delete(path, condition, timeout_seconds=self._seconds)

    def _carry_out(self, step: str, namespace: str, write: Callable[[], None]) -> None:
        """Write, and count what became of it; raises KubeError where nothing can be written now."""
        outcome = "done"
        try:
            write()
        except ConflictError:
            outcome = "changed"  # looked at again in the next pass
        except NotFoundError:
            outcome = "gone"  # its namespace, or the kind
        except (ForbiddenError, InvalidRequestError) as error:
            outcome = "refused"
            _log.warning("the Report of namespace %s: %s", namespace, error)
        self.outcomes[step, outcome] += 1
