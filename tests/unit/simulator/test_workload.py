"""What a workload's script says, and the memory that follows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from simulator.nvml.state import State
from simulator.workload.errors import NoCardError, OutOfMemoryError, StoppedError
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.memory import AllocatorProgram, FrameworkMemory, choose_cards
from simulator.workload.run import RunContext, ScriptRun
from simulator.workload.script import (
    Action,
    Await,
    Busy,
    Crash,
    Exit,
    Fork,
    Hold,
    Leave,
    Need,
    Resize,
    Serve,
    Slide,
    Wait,
    read_script,
)
from simulator.workload.signals import Workers


def actions(text: str) -> list[Action]:
    return [step.action for step in read_script(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hold 2Gi", Hold(2 * GIB)),
        ("hold 1.5Gi managed", Hold(1536 * MIB, managed=True)),
        ("hold 1500M", Hold(1_500_000_000)),
        ("free", Hold(0)),
        ("need 4Gi", Need(4 * GIB)),
        ("grow 512Mi", Resize(512 * MIB)),
        ("shrink 512Mi", Resize(-512 * MIB)),
        ("grow 512Mi/s to 6Gi", Slide(512 * MIB, 6 * GIB, up=True)),
        ("shrink 1Gi/s to 0", Slide(GIB, 0, up=False)),
        ("busy 60%", Busy(60)),
        ("busy 60 %", Busy(60)),
        ("busy 0", Busy(0)),
        ("wait 500ms", Wait(0.5)),
        ("wait 2m", Wait(120.0)),
        ("wait 1.5s", Wait(1.5)),
        ("await /tmp/go", Await("/tmp/go")),
        ("fork 3", Fork(3)),
        ("exit 0", Exit(0)),
        ("crash", Crash()),
        ("leave", Leave()),
        ("serve 127.0.0.1:61613/jobs", Serve("127.0.0.1", 61613, "jobs")),
    ],
)
def test_each_action_has_its_words(text: str, expected: Action) -> None:
    """A step is one action."""
    assert [expected] == actions(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hold", 'step 1: "hold" ends too early; write an amount such as 2Gi'),
        ("hold 2Gx", 'step 1: "2Gx" is no amount of memory; write an amount such as 2Gi'),
        ("hold -1Gi", '"-1Gi" is no amount of memory'),
        ("hold 1Gi; jump 3", 'step 2: "jump" is no action; use one of after, hold, grow'),
        ("hold 1Gi now", '"now" is one word too many; write ";" before the next step'),
        ("grow 1Gi/s", "ends too early"),
        ("grow 1Gi/s for 3s", '"for" is out of place; write "to"'),
        ("grow 0/s to 1Gi", '"0/s" is no rate; write more than zero'),
        ("after soon hold 1Gi", '"soon" is no duration; write a duration such as 5s'),
        ("after 5s", '"after 5s" ends too early; write an action'),
        ("wait 5", '"5" is no duration'),
        ("await", '"await" ends too early; write the path of a file'),
        ("busy 101%", '"101" is out of place; write a whole number from 0 to 100'),
        ("fork -1", '"-1" is out of place; write a whole number from 0 to 64'),
        ("exit 256", "from 0 to 255"),
        ("exit ²", "from 0 to 255"),
    ],
)
def test_the_offending_word_is_quoted(text: str, complaint: str) -> None:
    """An error names the step, the word and what was expected in its place."""
    with pytest.raises(InvalidError) as caught:
        read_script(text)

    assert complaint in str(caught.value)


class FakePauses:
    """Time that passes only in pauses and ends for good at a given second."""

    def __init__(self, end: float = 1000.0) -> None:
        self.time = 0.0
        self.end = end
        self.at: dict[float, Callable[[], None]] = {}

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float | None) -> None:
        self.time = self.end if seconds is None else self.time + seconds
        for due in [moment for moment in self.at if moment <= self.time]:
            self.at.pop(due)()
        if self.time >= self.end:
            raise StoppedError(15)


class Stage:
    """A machine with one T4, a process on it, and what that process said."""

    def __init__(self, folder: Path, *, patient: bool = False) -> None:
        self.state = State.create(folder / "cards", "T4")
        self.pauses = FakePauses()
        self.lines: list[str] = []
        self.memory = FrameworkMemory(
            self.state, self.state.find("0"), 0, AllocatorProgram(FRAMEWORKS["none"], {})
        )
        workers = Workers(self.lines.append)
        self.around = RunContext(self.pauses, workers, self.lines.append, patient=patient)
        self.run = ScriptRun([self.memory], self.around)

    def play(self, script: str) -> int:
        return self.run.follow(read_script(script))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_growth_takes_its_time(stage: Stage) -> None:
    """512 MiB a second from 2 to 6 GiB take eight seconds and end exactly there."""
    stage.play("hold 2Gi; grow 512Mi/s to 6Gi; exit 0")

    assert 6 * GIB == stage.memory.in_use
    assert pytest.approx(8.0, abs=0.1) == stage.pauses.time


USABLE = (15360 - 430) * MIB


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4,L4,A100-40:3g.20gb+1g.5gb,H100:")


def open_memory(
    state: State, framework: str = "none", *, context: int = 0, card: str = "0", **variables: str
) -> FrameworkMemory:
    program = AllocatorProgram(FRAMEWORKS[framework], variables, context)
    return FrameworkMemory(state, state.find(card), 0, program)


def test_the_context_is_outside_the_cap(state: State) -> None:
    """A process uses its context plus all that its framework may take."""
    limit = 1024
    memory = open_memory(state, "paddle", context=400 * MIB, FLAGS_gpu_memory_limit_mb=str(limit))
    memory.resize(limit * MIB)

    assert (limit + 400) * MIB == memory.shown


def test_beyond_the_cap_there_is_nothing(state: State) -> None:
    """One byte beyond the cap is out of memory while the card is empty."""
    memory = open_memory(state, "paddle", FLAGS_gpu_memory_limit_mb="1024")
    memory.resize(GIB)
    with pytest.raises(OutOfMemoryError, match="Out of memory error on GPU 0"):
        memory.resize(GIB + 1)

    assert GIB == memory.shown == memory.in_use


def test_an_arena_is_taken_at_once(state: State) -> None:
    """JAX shows its whole share from the start, however little of it is in use."""
    memory = open_memory(state, "jax", XLA_PYTHON_CLIENT_MEM_FRACTION="0.5")
    memory.resize(10 * MIB)

    assert 10 * MIB == memory.in_use
    assert abs(USABLE // 2 - memory.shown) <= 2 * MIB


def test_an_arena_backs_off_and_grows_later(state: State) -> None:
    """Beside a neighbour the arena is smaller; when he leaves, the cap can be reached after all."""
    neighbour = state.processes.put(state.find("0"), 4_000_000, 10 * GIB, kept=True)
    memory = open_memory(state, "jax")
    small = memory.shown
    neighbour.release()
    memory.resize(11 * GIB - 200 * MIB)

    assert small <= USABLE - 10 * GIB
    assert 11 * GIB - 200 * MIB == memory.shown


def test_without_growth_tensorflow_takes_the_card(state: State) -> None:
    """TensorFlow takes all but its reserve unless told to grow."""
    assert USABLE - 1050 * MIB == open_memory(state, "tensorflow").shown
    assert 0 == open_memory(state, "tensorflow", card="1", TF_FORCE_GPU_ALLOW_GROWTH="true").shown


def test_managed_memory_knows_no_cap(state: State) -> None:
    """A framework's cap does not see managed memory; the card does."""
    memory = open_memory(state, "paddle", FLAGS_gpu_memory_limit_mb="1024")
    memory.resize_managed(5 * GIB)
    with pytest.raises(OutOfMemoryError):
        memory.resize_managed(20 * GIB)

    assert (0, 5 * GIB) == (memory.shown, state.cards[0].room.taken)


@pytest.mark.parametrize(
    ("request_gib", "floor_gib", "held_gib"), [(6, 12, 4), (11, 12, 10), (6, 4, 10), (0, 12, 10)]
)
def test_a_cache_goes_back_where_the_hook_would_give_it_back(
    stage: Stage, request_gib: int, floor_gib: int, held_gib: int
) -> None:
    """What is not needed is kept, unless above the request and the card has less free than said."""
    hook = {"GPUFENCE_REQUEST_BYTES": f"{request_gib * GIB}"}
    hook |= {"GPUFENCE_GIVE_BACK_BYTES": f"{floor_gib * GIB}"}
    program = AllocatorProgram(FRAMEWORKS["none"], hook)
    memory = FrameworkMemory(stage.state, stage.state.find("0"), 0, program)
    stage.run = ScriptRun([memory], stage.around)
    stage.play("hold 10Gi; need 4Gi; after 2s need 4Gi; exit 0")

    assert (4 * GIB, held_gib * GIB) == (memory.in_use, memory.shown)


def test_a_cache_is_used_before_the_card(stage: Stage) -> None:
    """What the framework has kept serves again."""
    stage.play("hold 10Gi; need 4Gi; grow 3Gi; exit 0")

    assert (7 * GIB, 10 * GIB) == (stage.memory.in_use, stage.memory.shown)


@pytest.mark.parametrize(
    ("asked", "visible", "expected"),
    [
        ("1", None, [(1, -1)]),
        ("0,1", None, [(0, -1), (1, -1)]),
        ("2:1", None, [(2, 1)]),
        ("2", None, [(2, 0)]),
        (None, None, [(0, -1)]),
        (None, "all", [(0, -1)]),
        (None, "1,0", [(1, -1)]),
        ("0", "1", [(0, -1)]),
    ],
)
def test_the_cards_to_use(
    state: State, asked: str | None, visible: str | None, expected: list[tuple[int, int]]
) -> None:
    """What is asked for counts, else the first visible card; a cut one is its first instance."""
    variables = {} if visible is None else {"NVIDIA_VISIBLE_DEVICES": visible}
    places = choose_cards(state, asked, variables)

    assert expected == [(place.card, place.instance) for place in places]


def test_a_card_in_mig_mode_without_instances_is_no_card(state: State) -> None:
    """CUDA finds nothing on a card that waits to be cut."""
    with pytest.raises(NoCardError, match="has no instance to use"):
        choose_cards(state, "3", {})
