"""
PURE. The frozen values that the parts of the agent hand each other; every module here is one noun.

All times are seconds of CLOCK_BOOTTIME: the clock in which the kernel dates processes, and one that
nobody can set. Unknown is None, never zero.
"""
