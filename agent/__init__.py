"""
The node agent: measures what every process really holds and evicts the pod that breaks its limit.
"""
