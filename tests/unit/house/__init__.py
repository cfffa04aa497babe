"""The rules of the house that no tool knows, as tests; and chores, `python -m tests.unit.house`."""
