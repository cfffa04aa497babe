"""Limits that the driver itself holds containers to: read back, said, and what fences each pod."""

from agent.concerns.driver.concern import DriverConcern

__all__ = ["DriverConcern"]
