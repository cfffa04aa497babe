"""
CUDA's driver and runtime in C, of which unmodified frameworks allocate memory.

What programs hold is in the state file of `simulator.nvml`. Nothing is imported here.
"""
