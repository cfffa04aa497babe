"""
The frameworks by the name a person types.
"""

from __future__ import annotations

from simulator.workload.frameworks.jax import JAX
from simulator.workload.frameworks.others import CUPY, JULIA, NONE, PADDLE
from simulator.workload.frameworks.tensorflow import TENSORFLOW
from simulator.workload.frameworks.torch import OLD_TORCH, TORCH

FRAMEWORKS = {
    framework.name: framework
    for framework in (TORCH, OLD_TORCH, JAX, TENSORFLOW, CUPY, PADDLE, JULIA, NONE)
}
