"""
A process that uses a simulated card as a training script or a server would.

`script` reads what it shall do, `frameworks/` what its framework would make of the environment,
`memory` takes the memory, `run` does the steps. Nothing is imported here: workloads start fast.
"""
