"""Whose the processes are that a snapshot shows."""

from pathlib import Path

from agent.commands.snapshot import names_of_pods


def test_pods_are_named_by_the_kubelets_folder_of_logs(tmp_path: Path) -> None:
    """Folders that are no pod's are passed over, and a missing folder names nobody."""
    for name in ("team-a_train_uid-a", "lost+found", "a_b_c_d"):
        (tmp_path / name).mkdir()

    assert {"uid-a": ("team-a", "train")} == names_of_pods(str(tmp_path))
    assert {} == names_of_pods(str(tmp_path / "none"))
