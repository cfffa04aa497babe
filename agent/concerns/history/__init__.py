"""What each fenced pod held in the last minutes, and how it ended: a ConfigMap, and a page."""

from agent.concerns.history.concern import HistoryConcern

__all__ = ["HistoryConcern"]
