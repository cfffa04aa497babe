"""
What each framework makes of its environment: read here from how the frameworks behave, never from
the webhook's own table, so that a mistake there shows as a workload that breaks its limit.
"""

from simulator.workload.frameworks.jax import JAX
from simulator.workload.frameworks.others import CUPY, JULIA, NONE, PADDLE
from simulator.workload.frameworks.tensorflow import TENSORFLOW
from simulator.workload.frameworks.torch import OLD_TORCH, TORCH

FRAMEWORKS = {
    framework.name: framework
    for framework in (TORCH, OLD_TORCH, JAX, TENSORFLOW, CUPY, PADDLE, JULIA, NONE)
}
