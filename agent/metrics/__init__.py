"""
PURE. The page of metrics, made from the last moment when somebody asks for it.
"""

from agent.metrics.page import page

__all__ = ["page"]
