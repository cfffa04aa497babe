"""What the agent's parts hand each other, and the NVML child as a test scripts it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.attribute import attribute
from agent.cluster.filter import filter_pod
from agent.fence import NO_CLAIMS, ClaimsOfPod, PodContext
from agent.model.pod import Controller, PodLimit, PodOnNode, pods_on_node
from agent.model.sample import (
    UNSENSED,
    CardMemory,
    CardSample,
    CardWork,
    GpuProcess,
    ProcessList,
    Sample,
    merged,
)
from agent.model.use import Observation, Occupant, Owner, PodOnCard, ProcessUse
from agent.nvml.child import EndedError
from agent.nvml.faults import Code
from agent.nvml.protocol import (
    Accounted,
    Answer,
    Ask,
    Counted,
    Listed,
    Looked,
    NvmlFailure,
    Opened,
    Question,
    Seen,
    read_question,
    write_answer,
)
from agent.nvml.session import Session
from agent.nvml.settings import SamplerSettings
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.cards import Card
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.builders import T4_BYTES, card

LIMIT = 3 * GIB
CARDS = tuple(card(index) for index in range(8))


def container_id(pod: str, container: str = "main") -> str:
    """Make up a container's id, the same for the same names."""
    return f"{pod}-{container}".encode().hex().ljust(64, "0")[:64]


def pod(name: str = "a", *containers: str, limit: int | None = LIMIT, **more: Any) -> PodOnNode:
    """Build a pod in evict mode with this limit on every card."""
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "team-a",
        "name": name,
        "mode": Mode.EVICT,
        "limits": {} if limit is None else {item.uuid: PodLimit(limit) for item in CARDS},
        "containers": {container_id(name, item): item for item in containers or ("main",)},
    }
    return PodOnNode(**fields | more)


def read(
    raw: Mapping[str, Any],
    claims: Mapping[str, Any] | None = None,
    devices: Mapping[str, Card] | None = None,
    **ground: Any,
) -> PodOnNode:
    """
    Read a pod, given its claims and the cards that devices are: as the API server sends it, which
    has to come to the same as what the agent keeps of it, but for the failures that it forgets.
    """
    said: dict[str, Any] = {
        "labels": {names.MODE: "evict"},
        "annotations": {},
        "highest": Mode.EVICT,
        "cards": CARDS,
        "units": Units(),
    }
    context = PodContext(**said | ground)
    found = NO_CLAIMS if claims is None else ClaimsOfPod(claims, devices or {})
    sent = read_pod_on_node(dict(raw), context, found)
    kept = read_pod_on_node(filter_pod(dict(raw))[1], context, found)

    assert sent == replace(kept, of_operator=sent.of_operator, failures=sent.failures)
    return kept


def status_of(name: str, container: str = "main") -> dict[str, Any]:
    """Build the status of a pod whose one container runs."""
    identity = f"containerd://{container_id(name, container)}"
    return {"containerStatuses": [{"name": container, "containerID": identity}]}


def controller(kind: str = "ReplicaSet", name: str = "web", uid: str = "uid-web") -> Controller:
    return Controller("batch/v1" if kind == "Job" else "apps/v1", kind, name, uid)


def occupant(
    pid: int, pod_uid: str | None, container: str | None, *, started: float = -500.0, **more: Any
) -> Occupant:
    """Build a process that started long ago."""
    owner = None if pod_uid is None and container is None else Owner(pod_uid, container)
    return Occupant(pid, int(started * 100), started, owner, **more)


def process_of(item: PodOnNode, pid: int = 1, container: str = "main", **more: Any) -> Occupant:
    return occupant(pid, item.static_uid or item.uid, container_id(item.name, container), **more)


def on_card(item: PodOnNode, used: int | None, *processes: ProcessUse, **more: Any) -> PodOnCard:
    """Build a pod that holds so much on the first card, all of it confirmed."""
    limit = item.limit_on(CARDS[0].uuid)
    return PodOnCard(item, CARDS[0], limit, used, used, processes, **more)


def memory(used: int = 0, *, total: int = T4_BYTES) -> CardMemory:
    return CardMemory(total, used, total - used)


def card_sample(
    index: int = 0,
    held: Mapping[int, int | None] | None = None,
    *,
    at: float = 0.0,
    free: int | None = None,
    mps: Iterable[int] = (),
) -> CardSample:
    """
    Build a card on which each PID holds so much; none at all means that the list is unknown. Those
    in `mps` are clients of an MPS server.
    """
    used = sum(item or 0 for item in (held or {}).values())
    listed = None
    if held is not None:
        listed = ProcessList(at, tuple(GpuProcess(pid, item) for pid, item in held.items()))
    account = memory(used if free is None else T4_BYTES - free)
    return CardSample(CARDS[index], account, listed, frozenset(mps))


def uses(
    samples: Iterable[CardSample],
    occupants: Iterable[Occupant],
    pods: Iterable[PodOnNode],
    before: Observation | None = None,
    *,
    at: float = 0.0,
) -> Observation:
    """Attribute one sample."""
    known = {item.pid: item for item in occupants}
    return attribute(Sample(at, tuple(samples)), known, pods_on_node(pods), before)


TOTAL = 15360 * MIB
LOST = NvmlFailure(Code.GPU_IS_LOST, "nvmlDeviceGetHandleByIndex")
OPEN = Question(Ask.OPEN)
COUNT = Question(Ask.COUNT)
QUESTIONS = [COUNT, *(Question(Ask.LOOK, str(index)) for index in range(3))]
SETTINGS = SamplerSettings(deadline_seconds=4.0, start_seconds=60.0)


def look(index: int) -> Question:
    return Question(Ask.LOOK, str(index))


def processes_of(uuid: str) -> Question:
    return Question(Ask.LIST, uuid)


def card_memory(used: int = 0, reserved: int | None = 0) -> CardMemory:
    return CardMemory(TOTAL, used, TOTAL - used - (reserved or 0), reserved)


def seen(uuid: str = "GPU-0", **more: Any) -> Seen:
    said: dict[str, Any] = {
        "uuid": uuid,
        "model": "Tesla T4",
        "capability": (7, 5),
        "memory": card_memory(),
    }
    return Seen(**said | more)


def looked(uuid: str = "GPU-0", **more: Any) -> Looked:
    return Looked(seen(uuid, **more))


def cut(uuid: str, *instances: str, gaps: tuple[NvmlFailure, ...] = ()) -> Looked:
    """Build a card in MIG mode."""
    parent = seen(uuid, memory=NvmlFailure(None, "memory", "the instances tell"))
    return Looked(parent, tuple(seen(item, profile="1g.5gb") for item in instances), gaps)


def listed(at: float = 0.0, *compute: GpuProcess, **more: Any) -> Listed:
    mps = more.get("mps", ())
    return Listed(at, merged(compute, more.get("graphics", ()), mps), frozenset(i.pid for i in mps))


class Clock:
    """A clock that stands still unless somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Script:
    """
    What children answer, by question; `HANG` and `CRASH` are answers too. The default is a machine
    with one idle card.
    """

    def __init__(self) -> None:
        self.answers: dict[Question, Answer | str] = {
            OPEN: Opened("580.95.05"),
            COUNT: Counted(1),
            look(0): looked("GPU-0"),
            processes_of("GPU-0"): listed(),
        }
        self.seconds = 0.0
        self.clock = Clock()
        self.children: list[FakeChild] = []
        self.unkillable = False
        self.refuse_start = False
        self.asked: list[Question] = []

    def start(self, settings: SamplerSettings) -> FakeChild:
        del settings
        if self.refuse_start:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        self.children.append(FakeChild(self))
        return self.children[-1]

    def answer(self, question: Question) -> Answer | str:
        """
        Return what was scripted; on a card of which no script tells nothing was done, and nothing
        is accounted.
        """
        idle = CardWork(self.clock.now, self.clock.now, 0.0, {})
        silent: dict[Ask, Answer] = {
            Ask.WORK: idle,
            Ask.PEAKS: Accounted(on=False),
            Ask.SENSE: UNSENSED,
        }
        return self.answers.get(question, silent.get(question.ask, HANG))

    def asked_since(self, action: Callable[[], object]) -> list[Question]:
        """Return what was asked while something was done."""
        before = len(self.asked)
        action()
        return self.asked[before:]


HANG = "hang"
CRASH = "crash"
NONSENSE = "nonsense"


class FakeChild:
    """
    A child that answers one question after the other, each taking the script's number of seconds.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._open: list[tuple[int, Question]] = []
        self._idle_since = 0.0
        self.killed = False
        self.closed = False

    def send(self, text: str) -> None:
        if not self._open:
            self._idle_since = self._script.clock()
        for line in text.splitlines():
            self._open.append(read_question(line))
            self._script.asked.append(self._open[-1][1])

    def receive(self, seconds: float) -> list[str]:
        clock = self._script.clock
        number, question = self._open[0] if self._open else (0, OPEN)
        answer = self._script.answer(question) if self._open else HANG
        ready_at = self._idle_since + self._script.seconds
        if answer == CRASH:
            raise EndedError("it was ended by signal 11 (Segmentation fault)")
        if answer == HANG or ready_at > clock.now + seconds:
            clock.now += seconds
            return []
        clock.now = max(clock.now, ready_at)
        self._idle_since = ready_at
        self._open.pop(0)
        return [answer if isinstance(answer, str) else write_answer(number, answer)]

    def kill(self) -> bool:
        self.killed = True
        return not self._script.unkillable

    def gone(self) -> bool:
        return not self._script.unkillable

    def close(self) -> None:
        self.closed = True


IN_USE = GpuProcess(4711, 2 * GIB)


def ask(session: Session, script: Script, questions: list[Question] | None = None) -> list[str]:
    """Ask as one sample does; return the subjects that were answered."""
    until = script.clock() + SETTINGS.deadline_seconds
    session.ready(until)
    answers = session.ask(QUESTIONS if questions is None else questions, until)
    return [f"{question.ask} {question.subject}".strip() for question in answers]
