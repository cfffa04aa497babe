"""
The names and sums that every part of gpufence must agree on.

Everything here is pure: the same input gives the same output, nothing is read or written, and
nothing beyond the standard library is imported.

Values are named tuples: every program imports this package, some for one short answer, and classes
made by dataclasses (with all that module imports) would take most of the time that takes.
"""
