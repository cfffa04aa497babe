"""Scaling by seconds of backlog: a model of it, and real KEDA on a simulated node (make keda)."""
