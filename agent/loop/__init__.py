"""
The agent's deciding half set in motion: when to look, what to publish, and who acts meanwhile.
"""

from agent.loop.hands import Hands
from agent.loop.loop import Loop, Ports, Rules
from agent.loop.pace import Pace

__all__ = ["Hands", "Loop", "Pace", "Ports", "Rules"]
