"""
PURE. Who has to go, and why: `standing` against the limit, `time` over it, `brakes`, `reason`, put
together in `judge`.

The loop calls `judge` once a tick, `objection` right before each act and `settle` after it; whoever
carries an act out reads the pod once more and asks `objection_of_pod`.
"""

from agent.judge.act import objection, objection_of_pod, settle
from agent.judge.judge import judge

__all__ = ["judge", "objection", "objection_of_pod", "settle"]
