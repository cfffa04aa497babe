"""
Who is busy and who is idle: from what a card, the kernel and memory show to a state for each pod on
each card, and to the condition on the pod.
"""

from agent.activity.condition import NOTHING_SAID, Said, conditions
from agent.activity.watch import pids_to_read, strangers, watched

__all__ = ["NOTHING_SAID", "Said", "conditions", "pids_to_read", "strangers", "watched"]
