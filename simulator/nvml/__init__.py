"""
Graphics cards that NVIDIA's own client library cannot tell from hardware.

`state.State` makes a machine and changes it while clients run; `client.environment` tells what a
client process needs to see it; `library/` is the C library that the client then loads. Nothing is
imported here, so that a workload starts as fast as its few modules do.
"""
