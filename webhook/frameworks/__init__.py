"""PURE. What frameworks and servers can be told about memory, and what each container is told."""
