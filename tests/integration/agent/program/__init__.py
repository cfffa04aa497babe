"""The agent as a real process on a simulated node, with a real API server."""
