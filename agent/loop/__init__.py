"""
The agent's deciding half set in motion: when to look, what to publish, and who acts meanwhile.
"""

from agent.loop.loop import Loop, Ports, Rules, TickThread
from agent.loop.worker import Worker

__all__ = ["Loop", "Ports", "Rules", "TickThread", "Worker"]
