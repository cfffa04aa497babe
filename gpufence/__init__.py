"""
The words and sums that every part of gpufence must agree on.

Everything here is pure: the same input gives the same output, nothing is read or written, and
nothing beyond the standard library is imported.
"""
