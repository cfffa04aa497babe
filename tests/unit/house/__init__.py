"""The rules of the house that no tool knows, as tests, and its figures."""
