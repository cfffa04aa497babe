"""
Scaling by seconds of backlog: a model of it, and real KEDA on a simulated node; run by make keda.
"""
