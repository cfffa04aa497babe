"""PURE. What frameworks can be told about memory by variables: each one, its values, the sums."""
