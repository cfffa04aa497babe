"""
The show: gpufence at work on this machine, told as it happens, with nothing but real programs.
"""
