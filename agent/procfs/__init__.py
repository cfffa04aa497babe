"""From a process to its pod, by what the kernel says and no workload can forge."""
