"""What stands between kubelet and a process: control groups, and the toolkit's hook."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from gpufence.names import SIMULATOR_STATE
from simulator.node import hook
from simulator.node.errors import HookError, StartError
from simulator.node.machine import VISIBLE
from simulator.node.toolkit import Toolkit, failure_text, wanted_limits
from simulator.nvml.build import LIBRARY
from simulator.nvml.groups import GROUP, ROOT, GroupTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpufence.cards import Card
    from simulator.node.toolkit import Wanted

_SECONDS = 60.0


class ContainerRuntime:
    """
    containerd with NVIDIA's toolkit on one node: a group for each container, limits before it runs.

    `library` is the folder of the driver's libraries, as the host has them. On a host with control
    groups of version 1 there is no tree.
    """

    def __init__(self, cgroups: Path, library: Path, state: Path, *, cgroup_v2: bool) -> None:
        self.root = cgroups
        self.toolkit = Toolkit.NONE
        self.cgroup_v2 = cgroup_v2
        cgroups.mkdir(parents=True, exist_ok=True)
        self._tree = GroupTree(cgroups) if cgroup_v2 else None
        self._library = library
        self._state = state

    def begin(
        self, path: str, variables: Mapping[str, str], cards: Sequence[Card]
    ) -> Mapping[str, str]:
        """
        Make the container's group and let the toolkit set its limits; return what its process sees.

        Raises StartError where the toolkit's hook fails: the container does not start then.
        """
        group = None if self._tree is None else self._tree.add(path)
        uuids = [card.uuid for card in visible_cards(variables, cards)]
        try:
            if self.toolkit.has_hook and uuids:
                listed = [f"{name}={value}" for name, value in variables.items()]
                self.run_hook(group, listed, uuids)
        except HookError as error:
            self.end(path)
            raise StartError(failure_text(error)) from error
        return {} if group is None else {GROUP: str(group)}

    def end(self, path: str) -> None:
        """Remove the group of a container that has ended."""
        if self._tree is not None:
            self._tree.remove(path)

    def run_hook(self, group: Path | None, listed: Sequence[str], uuids: Sequence[str]) -> None:
        """Do what the toolkit's hook does for a group; raises HookError where that fails."""
        wanted = wanted_limits(listed, cgroup_v2=self.cgroup_v2)
        if wanted is not None and group is not None:
            self._set(group, wanted, uuids)

    def _set(self, group: Path, wanted: Wanted, uuids: Sequence[str]) -> None:
        library = str(self._library / LIBRARY)
        numbers = (str(wanted.soft), str(wanted.hard))
        done = subprocess.run(
            [sys.executable, "-I", "-S", hook.__file__, library, str(group), *numbers, *uuids],
            env={SIMULATOR_STATE: str(self._state), ROOT: "1"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise HookError(done.stderr, done.returncode)


def visible_cards(variables: Mapping[str, str], cards: Sequence[Card]) -> tuple[Card, ...]:
    """Return which of the whole cards the toolkit gives a container, by the variable it reads."""
    wanted = [name.strip() for name in variables.get(VISIBLE, "").split(",")]
    if wanted == ["all"]:
        return tuple(cards)
    return tuple(card for card in cards if card.uuid in wanted or str(card.index) in wanted)
