"""What each pod holds, on the pod itself: for people who may read it and may not ask the agent."""

from agent.concerns.shown.concern import ShownConcern

__all__ = ["ShownConcern"]
