"""What is made from the tree, and is not shipped with it: `python -m tools`."""
