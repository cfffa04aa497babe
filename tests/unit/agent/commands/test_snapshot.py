"""A snapshot as tables."""

from pathlib import Path

from agent.commands.snapshot import as_text, names_of_pods
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import CardRow, NobodyRow, PodRow, ProcessRow, Snapshot, UseRow

T4 = CardRow("GPU-0", 0, "Tesla T4", 15 * GIB, 4 * GIB, 11 * GIB, 450 * MIB)
LOST = CardRow("GPU-1", 1, "Tesla T4", 15 * GIB, trouble="it fell off the bus")


def snapshot(**more: object) -> Snapshot:
    at = "2026-01-02T03:04:05Z"
    said = {"node": "gpu-1", "version": "1.2.3", "at": at, "started": at, "driver": "580"}
    return Snapshot(**said | more)  # type: ignore[arg-type] # any field


def test_cards_and_processes_are_shown_with_their_pods() -> None:
    """
    Each process stands with its card, its use, and its pod by name or UID; unknown is no number.
    """
    uses = (UseRow("GPU-0", GIB, processes=(ProcessRow(7, GIB, "abc"),)),)
    said = snapshot(
        cards=(T4, LOST),
        pods=(
            PodRow("uid-a", "team-a", "train", uses=uses),
            PodRow("uid-b", "", "", uses=(UseRow("GPU-0", None, processes=(_unknown(),)),)),
        ),
        nobody=(NobodyRow("GPU-0", ProcessRow(9, GIB, command="Xorg\n")),),
    )
    expected = """\
gpu-1, 2026-01-02T03:04:05Z, driver 580, gpufence 1.2.3

CARD   UUID    MODEL          TOTAL       USED        FREE   RESERVED
0      GPU-0   Tesla T4   15360 MiB   4096 MiB   11264 MiB    450 MiB
1      GPU-1   Tesla T4   15360 MiB          ?           ?          ?

CARD   PID       USED   NAMESPACE   POD      CONTAINER   COMMAND
0        7   1024 MiB   team-a      train    abc         -
0        8          ?   -           uid-b    def         -
0        9   1024 MiB   -           no pod   -           Xorg?
card 1: it fell off the bus
"""
    assert expected == as_text(said)


def test_an_idle_machine_says_so() -> None:
    """Cards without processes are no empty table."""
    assert as_text(snapshot(cards=(T4,))).endswith("\nNo process holds memory of a card.\n")


def test_a_machine_without_nvml_says_why() -> None:
    """The trouble stands where the cards would."""
    expected = "gpu-1, 2026-01-02T03:04:05Z, gpufence 1.2.3\nno card can be read: no library\n"
    assert expected == as_text(snapshot(driver="", trouble="no library"))


def test_pods_are_named_by_the_kubelets_folder_of_logs(tmp_path: Path) -> None:
    """Folders that are no pod's are passed over, and a missing folder names nobody."""
    for name in ("team-a_train_uid-a", "lost+found", "a_b_c_d"):
        (tmp_path / name).mkdir()

    assert {"uid-a": ("team-a", "train")} == names_of_pods(str(tmp_path))
    assert {} == names_of_pods(str(tmp_path / "none"))


def _unknown() -> ProcessRow:
    return ProcessRow(8, None, "def")
