"""Containers that ended at the cap they were given: an Event, a metric, a field of the snapshot."""

from agent.concerns.capped.concern import CappedConcern

__all__ = ["CappedConcern"]
