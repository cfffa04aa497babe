"""
The parts of the start-up hook that decide, in this very process; what it does is in
tests/contract/python_hook.
"""
