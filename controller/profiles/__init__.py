"""What models need, from what all agents remember to one object for each owner."""
