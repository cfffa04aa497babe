"""
PURE. Who has to go, and why: `standing` against the limit, `time` over it, `brakes`, `reason`, put
together in `judge`.

The loop calls `judge` once a tick, `objection` right before each act and `settle` after it; what
carries an act out reads the pod once more and asks `objection_of_pod`.
"""

from agent.judge.judge import judge, objection, objection_of_pod, settle

__all__ = ["judge", "objection", "objection_of_pod", "settle"]
