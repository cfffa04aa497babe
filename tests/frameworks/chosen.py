"""Which environments a run is about: those that ONLY names, or all."""

import os

from simulator.wheels.catalog import find_wheels

VARIABLE = "GPUFENCE_FRAMEWORKS_ONLY"


def is_chosen(name: str) -> bool:
    only = {find_wheels(one).name for one in os.environ.get(VARIABLE, "").split()}
    return not only or name in only
