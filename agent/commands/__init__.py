"""What people run on a node."""
