"""
The cards of this node, measured through NVML by a child process that may hang, crash and be
replaced while the agent goes on.

`sampler.Sampler` is the parent's end; `python -m agent.nvml` is the child, the sole importer of
pynvml. Nothing is imported here, so that the child stays small.
"""
