"""KEDA's own operator and metrics adapter beside a simulated control plane."""

from simulator.keda.build import KedaPrograms, ensure
from simulator.keda.programs import Keda

__all__ = ["Keda", "KedaPrograms", "ensure"]
