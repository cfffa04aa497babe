"""
PURE. Who has to go, and why: a file for each reason, put together in `judge.py`.

The loop calls `judge` once a tick, `objection` right before each act and `settle` after it; whoever
carries an act out reads the pod once more and asks `objection_of_pod`.
"""

from agent.judge.judge import judge
from agent.judge.recheck import objection, objection_of_pod
from agent.judge.settle import settle

__all__ = ["judge", "objection", "objection_of_pod", "settle"]
