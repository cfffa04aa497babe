"""gpufence in a cluster of thousands of nodes, on a real API server; run by make scale."""
