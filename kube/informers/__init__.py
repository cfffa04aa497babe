"""What is known of the cluster: collections that are followed, and what is kept of each object."""

from kube.informers.informers import Absence, Health, Informers, Probing, is_current
from kube.informers.interning import Interner
from kube.informers.reflector import Handler, Reflector, ReflectorState
from kube.informers.store import Store

__all__ = [
    "Absence",
    "Handler",
    "Health",
    "Informers",
    "Interner",
    "Probing",
    "Reflector",
    "ReflectorState",
    "Store",
    "is_current",
]
