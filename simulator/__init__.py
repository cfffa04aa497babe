"""Stands in for what a contributor's desk lacks: a cluster, a GPU and the processes that use it."""
