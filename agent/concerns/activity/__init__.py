"""Which pods are busy and which are idle: metrics, rows of the snapshot, and a condition."""

from agent.concerns.activity.concern import ActivityConcern

__all__ = ["ActivityConcern"]
