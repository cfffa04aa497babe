"""
The mutating admission webhook: rewrites GPU pods when they are created and when they are bound.
"""
