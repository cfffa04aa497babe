"""
The images that the cluster's pods are made of: a base of Debian, ours on it, and two helpers.
"""

from simulator.cluster.images.archives import Images

__all__ = ["Images"]
