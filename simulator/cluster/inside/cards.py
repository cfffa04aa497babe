"""
The node's cards: a state file and the library that reads it, where volumes can bring them to pods.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from simulator.cluster.setup import NODE_ADDRESS, SIMULATED, STATE
from simulator.node.hardware import cards_of, driver_version
from simulator.node.resources import Machine
from simulator.node.sharing import Dialect, Sharing
from simulator.nvml.build import library_path
from simulator.nvml.state import State

if TYPE_CHECKING:
    from simulator.cluster.setup import Setup


def install(setup: Setup) -> Machine:
    """
    Put the cards in and describe the machine that has them.

    The state is made here, inside, because it remembers the PID namespace in which it was made as
    the one whose numbers a driver knows.
    """
    SIMULATED.mkdir(parents=True)
    source = library_path()
    shutil.copy(source, SIMULATED / source.name)
    state = State.create(STATE, setup.cards, seed=setup.node)
    return Machine(
        name=setup.node,
        address=NODE_ADDRESS,
        cards=cards_of(state),
        sharing=Sharing(Dialect.GPUSHARE, setup.unit),
        driver=driver_version(),
        gfd=True,
    )
