"""
The control plane's programs: which, from which sources, and where they are once built.
"""

from simulator.controlplane.build.assets import Assets

__all__ = ["Assets"]
