"""
The parts of the start-up hook that decide, in this very process; what it does: tests/contract/python_hook.
"""
