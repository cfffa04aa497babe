"""
What runs inside a framework's own environment: allocate with it, and say how that went.

`allocators` knows the frameworks, `tenant` follows a workload's script, `probe` grows until it is
refused. They run under the environment's Python, which has nothing of ours installed.
"""
