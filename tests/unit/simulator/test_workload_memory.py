"""How a process takes memory: context, cap, arena, and what is left when it cannot."""

from pathlib import Path

import pytest

from gpufence.quantity import GIB, MIB
from simulator.nvml.state import State
from simulator.workload.errors import FrameworkError, NoCardError, OutOfMemoryError
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.memory import AllocatorProgram, FrameworkMemory, choose_cards

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


def test_a_failed_start_leaves_nothing_behind(state: State) -> None:
    """A process that its framework refuses to start holds no memory when it is gone."""
    with pytest.raises(FrameworkError) as caught:
        open_memory(
            state,
            "torch",
            context=300 * MIB,
            PYTORCH_ALLOC_CONF="per_process_memory_fraction:",
        )

    assert 134 == caught.value.code
    assert 0 == state.cards[0].room.taken


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


def test_on_the_cpu_the_card_stays_empty(state: State) -> None:
    """A JAX process that fell back to the CPU runs and is not listed."""
    memory = open_memory(state, "jax", XLA_PYTHON_CLIENT_MEM_FRACTION="abc", context=300 * MIB)
    memory.resize(100 * GIB)
    memory.resize_managed(100 * GIB)
    memory.work(50)
    memory.release()

    assert 0 == memory.shown
    assert () == state.cards[0].uses
    assert "falling back to cpu" in memory.budget.why


def test_managed_memory_knows_no_cap(state: State) -> None:
    """A framework's cap does not see managed memory; the card does."""
    memory = open_memory(state, "paddle", FLAGS_gpu_memory_limit_mb="1024")
    memory.resize_managed(5 * GIB)
    with pytest.raises(OutOfMemoryError):
        memory.resize_managed(20 * GIB)

    assert (0, 5 * GIB) == (memory.shown, state.cards[0].room.taken)


def test_another_process_takes_as_much_again(state: State) -> None:
    """
    What was reopened for a worker uses as much as the original, context and managed part included.
    """
    memory = open_memory(state, context=300 * MIB)
    memory.resize(GIB)
    memory.resize_managed(MIB)
    again = memory.reopened()
    both = state.cards[0].room.taken

    assert memory.shown == again.shown == GIB + 300 * MIB
    assert 2 * (GIB + 301 * MIB) == both


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


@pytest.mark.parametrize("visible", ["", "none", "void"])
def test_without_a_visible_card_it_is_said(state: State, visible: str) -> None:
    """A container without a card is told so, and by what variable."""
    with pytest.raises(NoCardError, match="no CUDA-capable device is detected"):
        choose_cards(state, None, {"NVIDIA_VISIBLE_DEVICES": visible})


def test_a_card_in_mig_mode_without_instances_is_no_card(state: State) -> None:
    """CUDA finds nothing on a card that waits to be cut."""
    with pytest.raises(NoCardError, match="has no instance to use"):
        choose_cards(state, "3", {})
