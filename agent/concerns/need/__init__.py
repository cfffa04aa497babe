"""How much memory models need, for longer than an agent lives: a ConfigMap, and a page."""

from agent.concerns.need.concern import NeedConcern

__all__ = ["NeedConcern"]
