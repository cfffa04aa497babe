"""The inside of a cluster's machine: what runs in namespaces of its own."""
