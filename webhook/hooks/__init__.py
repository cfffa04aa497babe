"""The hooks, each for one kind of object that the API server asks about."""
